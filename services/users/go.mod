module github.com/idplatform/idplatform/services/users

go 1.26.0

replace github.com/idplatform/idplatform/pkg => ../../pkg

require (
	github.com/ccojocar/zxcvbn-go v1.0.4
	github.com/idplatform/idplatform/pkg v0.0.0
	github.com/stretchr/testify v1.12.1
	go.uber.org/goleak v1.3.0
	golang.org/x/crypto v0.58.0
	golang.org/x/image v0.47.0
	golang.org/x/sync v0.24.0
	golang.org/x/text v0.43.0
	pgregory.net/rapid v1.3.0
)
