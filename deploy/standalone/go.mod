module github.com/idplatform/idplatform/deploy/standalone

go 1.26.0
