module github.com/idplatform/idplatform/services/users

go 1.26.0
