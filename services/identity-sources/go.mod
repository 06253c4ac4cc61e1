module github.com/idplatform/idplatform/services/identity-sources

go 1.26.0

replace (
	github.com/idplatform/idplatform/pkg => ../../pkg
	github.com/idplatform/idplatform/services/questions => ../questions
)

require (
	github.com/idplatform/idplatform/pkg v0.0.0
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.2 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
)
