"""What the pictures of bench/ have in common: they are read on a light page and on a dark one."""

# An <img> follows the reader's own choice of light and dark, so a picture brings both.
STYLE = """<style>
.page{fill:#fff} text{fill:#1a202c} .faint{fill:#4a5568} .grid{stroke:#e2e8f0} .one{stroke:#4a5568}
@media (prefers-color-scheme: dark){
.page{fill:#0d1117} text{fill:#e6edf3} .faint{fill:#9aa5b1} .grid{stroke:#2d3540}
.one{stroke:#9aa5b1}}
</style>"""


def open_svg(width, height, font):
    return [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'font-family="sans-serif" font-size="{font}">', STYLE,
            f'<rect class="page" width="{width}" height="{height}"/>']


def short(n):
    """A power of ten that fits under a tick: 10, 1,000, 100 k, 10 M."""
    if n >= 10 ** 6:
        return f"{n // 10 ** 6} M"
    return f"{n // 1000} k" if n >= 10 ** 4 else f"{n:,}"
