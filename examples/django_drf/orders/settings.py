import os
from urllib.parse import urlsplit

database = urlsplit(os.environ["DATABASE_URL"])
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": database.path.strip("/"),
        "USER": database.username,
        "PASSWORD": database.password,
        "HOST": database.hostname,
        "PORT": database.port,
        "ATOMIC_REQUESTS": True,
        "CONN_MAX_AGE": 600,
    }
}
SECRET_KEY = os.environ["SECRET_KEY"]
ALLOWED_HOSTS = ["127.0.0.1", "localhost"]
INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes", "orders"]
ROOT_URLCONF = "orders.api"
MIDDLEWARE = ["randflake.django.RetryLaterMiddleware"]
RANDFLAKE = {"ACQUIRE_TIMEOUT": 2}  # store and secret are those of the environment
