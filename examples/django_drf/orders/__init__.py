"""A shop with Django and Django REST framework: ids in URLs, in JSON and in the database.

An item has an id of Randflake. An order has a Snowflake, so that the database finds the orders of a
day by their primary key; outside, a cloak hides it. Settings: DATABASE_URL, SECRET_KEY,
RANDFLAKE_STORE, RANDFLAKE_SECRET, and DJANGO_SETTINGS_MODULE=orders.settings. Once:

    randflake lease init --new
    randflake lease init --new --namespace orders --layout twitter
    python -m django migrate --run-syncdb

Then: gunicorn --preload --workers 2 "django.core.wsgi:get_wsgi_application()"
"""
