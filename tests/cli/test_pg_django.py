#!/usr/bin/env python3
"""A project of Django's, whose tables are in frond by one setting of its database: migrations, and what they keep."""

import os
import subprocess

from harness import contains, equal, main, test
from pg_server import end_shared, fresh, missing, shared

PYTHON = "/usr/bin/python3"
LOAD = "-c frond.bulk_load=on"
SETTINGS = """
DATABASES = {{"default": {{"ENGINE": "django.db.backends.postgresql", "HOST": "{host}", "USER": "owner", "NAME": "{name}"}}}}
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", "shop"]
SECRET_KEY = "x"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
"""
MANAGE = """
import os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "settings"
from django.core.management import execute_from_command_line
execute_from_command_line(sys.argv)
"""
FIRST = """
from django.db import models

class Tag(models.Model):
    name = models.CharField(max_length=20, unique=True)

class Author(models.Model):
    name = models.CharField(max_length=20, db_index=True)
    code = models.IntegerField(null=True)

class Book(models.Model):
    title = models.CharField(max_length=50)
    author = models.ForeignKey(Author, on_delete=models.CASCADE)
    tags = models.ManyToManyField(Tag)
    year = models.IntegerField(default=2000)

    class Meta:
        unique_together = [("title", "author")]
        indexes = [models.Index(fields=["-year"], name="by_year")]
"""
SECOND = """
from django.db import models

class Tag(models.Model):
    name = models.CharField(max_length=40, unique=True)

class Author(models.Model):
    name = models.CharField(max_length=20)
    born = models.IntegerField(default=1900)

class Book(models.Model):
    title = models.CharField(max_length=50, unique=True)
    author = models.ForeignKey(Author, on_delete=models.CASCADE)
    tags = models.ManyToManyField(Tag)
    year = models.IntegerField(default=2000)
"""
USE = """
from django.db import IntegrityError, transaction
from django.db.models import Count, F
from shop.models import Author, Book, Tag
ann, bob = Author.objects.create(name="ann"), Author.objects.create(name="bob")
tags = Tag.objects.bulk_create([Tag(name="tag %d" % i) for i in range(5)])
for i in range(4):
    Book.objects.create(title="book %d" % i, author=ann, year=2000 + i).tags.set(tags[:i])
try:
    with transaction.atomic():
        Book.objects.create(title="book 1", author=ann)
    print("twice")
except IntegrityError:
    pass
with transaction.atomic():
    Book.objects.select_for_update().filter(title="book 1").update(year=F("year") + 10)
print(list(Author.objects.annotate(books=Count("book")).order_by("name").values_list("name", "books")))
print([(b.title, b.n) for b in Book.objects.annotate(n=Count("tags")).order_by("author__name", "-n")])
print(Book.objects.filter(title__startswith="book", tags__name="tag 0").distinct().count(), Book.objects.get(title="book 1").year)
"""


def without():
    done = subprocess.run([PYTHON, "-c", "import django, psycopg2"], capture_output=True, check=False) if not missing() else None
    return missing() or (None if done.returncode == 0 else "python3-django and python3-psycopg2 are not installed")


class Project:
    def __init__(self, cwd, name):
        self.cwd = cwd
        (cwd / "shop/migrations").mkdir(parents=True)
        for empty in ("shop/__init__.py", "shop/migrations/__init__.py"):
            (cwd / empty).write_text("")
        (cwd / "settings.py").write_text(SETTINGS.format(host=shared()[0].home / "socket", name=name))
        (cwd / "manage.py").write_text(MANAGE)

    def manage(self, *args, text=None, options=""):
        done = subprocess.run([PYTHON, "-B", "manage.py", *args], cwd=self.cwd, input=text, capture_output=True, text=True,
                              timeout=120, check=False, env={**os.environ, "PGOPTIONS": options})
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@test
def a_project_migrates_and_asks(cwd):
    with fresh()() as s:
        project = Project(cwd, s.one("SELECT current_database()"))
        (cwd / "shop/models.py").write_text(FIRST)
        project.manage("makemigrations", "shop")
        project.manage("migrate")
        equal(s.one("SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"), "0")
        told = project.manage("shell", text=USE)
        equal(told.splitlines(), ["[('ann', 4), ('bob', 0)]", "[('book 3', 3), ('book 2', 2), ('book 1', 1), ('book 0', 0)]", "3 2011"])
        # Columns and constraints come and go, by their names in PostgreSQL's catalog.
        (cwd / "shop/models.py").write_text(SECOND)
        project.manage("makemigrations", "shop")
        contains(project.manage("sqlmigrate", "shop", "0002"), "DROP CONSTRAINT")
        # A new column's default changes rows, and definitions follow.
        project.manage("migrate", options=LOAD)
        equal(s.do("SELECT name, born FROM shop_author ORDER BY 1"), [["ann", "1900"], ["bob", "1900"]])
        s.fails("23505", "INSERT INTO shop_book (title, author_id, year) SELECT 'book 1', id, 0 FROM shop_author WHERE name = 'bob'")
        s.fails("23503", "INSERT INTO shop_book (title, author_id, year) VALUES ('x', 99, 0)")
        project.manage("migrate", "shop", "0001", options=LOAD)
        s.do("INSERT INTO shop_book (title, author_id, year) SELECT 'book 1', id, 0 FROM shop_author WHERE name = 'bob'")
        equal(project.manage("makemigrations", "--check", "--dry-run", "auth"), "No changes detected in app 'auth'\n")


try:
    main(without())
finally:
    end_shared()
