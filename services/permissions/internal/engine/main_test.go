package engine

import (
	"testing"

	"github.com/idplatform/idplatform/pkg/testkit/basic"
)

func TestMain(m *testing.M) { basic.Main(m) }
