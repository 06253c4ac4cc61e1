package secret_test

import (
	"testing"

	"github.com/idplatform/idplatform/pkg/testkit/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }
