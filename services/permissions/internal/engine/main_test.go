package engine

import (
	"testing"

	"github.com/idplatform/idplatform/pkg/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }
