module github.com/idplatform/idplatform/deploy/standalone

go 1.26.0

replace (
	github.com/idplatform/idplatform/gateway => ../../gateway
	github.com/idplatform/idplatform/pkg => ../../pkg
	github.com/idplatform/idplatform/services/users => ../../services/users
)

require (
	github.com/gofrs/flock v0.13.1
	github.com/idplatform/idplatform/gateway v0.0.0
	github.com/idplatform/idplatform/pkg v0.0.0
	github.com/idplatform/idplatform/services/users v0.0.0
	github.com/prometheus/client_golang v1.25.0
	github.com/spf13/pflag v1.0.10
)

require (
	github.com/gin-gonic/gin v1.12.0
	github.com/stretchr/testify v1.12.1
)
