"""A project of Django for the tests, with everything that shows ids."""

import django
from django.conf import settings

settings.configure(
    SECRET_KEY="of no use to anybody",
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF="shop.urls",
    USE_TZ=True,
    USE_THOUSAND_SEPARATOR=True,
    AUTH_USER_MODEL="shop.User",
    PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    STATIC_URL="static/",
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    MIGRATION_MODULES=dict.fromkeys(["admin", "auth", "contenttypes", "sessions"]),
    INSTALLED_APPS=[
        "django.contrib.admin",
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.messages",
        "django.contrib.sessions",
        "rest_framework",
        "shop",
    ],
    MIDDLEWARE=[
        "randflake.django.RetryLaterMiddleware",
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
    ],
    TEMPLATES=[
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "APP_DIRS": True,
            "OPTIONS": {
                "context_processors": [
                    "django.template.context_processors.request",
                    "django.contrib.auth.context_processors.auth",
                    "django.contrib.messages.context_processors.messages",
                ]
            },
        }
    ],
)
django.setup()
