module github.com/idplatform/idplatform/console/browsertest

go 1.26.0

replace (
	github.com/idplatform/idplatform/console => ../
	github.com/idplatform/idplatform/pkg => ../../pkg
)

require (
	github.com/chromedp/cdproto v0.159.2
	github.com/chromedp/chromedp v0.23.0
	github.com/idplatform/idplatform/console v0.0.0-00010101000000-000000000000
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/go-jose/go-jose/v4 v4.1.8 // indirect
	github.com/go-json-experiment/json v0.0.0-20260820222146-c27c302e5fc3 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)
