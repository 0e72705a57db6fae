module snowflakes

go 1.19
