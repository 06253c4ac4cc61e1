module github.com/idplatform/idplatform/sdk/go

go 1.26.0

require github.com/go-jose/go-jose/v4 v4.1.8

require (
	github.com/oapi-codegen/nullable v1.1.0
	github.com/stretchr/testify v1.12.1
)

require go.yaml.in/yaml/v3 v3.0.5 // indirect
