module github.com/idplatform/idplatform/gateway

go 1.26.0
