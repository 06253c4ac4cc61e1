module github.com/idplatform/idplatform/cli

go 1.26.0

replace github.com/idplatform/idplatform/sdk/go => ../sdk/go

require (
	github.com/agnivade/levenshtein v1.2.1
	github.com/gofrs/flock v0.13.1
	github.com/idplatform/idplatform/sdk/go v0.0.0-00010101000000-000000000000
	github.com/itchyny/gojq v0.12.20
	github.com/lanrat/extsort v1.5.0
	github.com/rivo/uniseg v0.4.7
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.2
	github.com/spf13/cobra v1.10.2
	github.com/spf13/pflag v1.0.10
	github.com/stretchr/testify v1.12.1
	go.yaml.in/yaml/v3 v3.0.5
	golang.org/x/oauth2 v0.37.0
	golang.org/x/term v0.47.0
	golang.org/x/text v0.43.0
)

require (
	github.com/cpuguy83/go-md2man/v2 v2.0.6 // indirect
	github.com/go-jose/go-jose/v4 v4.1.8 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/itchyny/timefmt-go v0.1.9 // indirect
	github.com/oapi-codegen/nullable v1.1.0 // indirect
	github.com/russross/blackfriday/v2 v2.1.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)
