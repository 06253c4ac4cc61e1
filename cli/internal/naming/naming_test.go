package naming_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/idplatform/idplatform/cli/internal/naming"
)

func TestNames(t *testing.T) {
	t.Parallel()
	for _, application := range []string{"crm", "a:b", `a\b`, `a\:b`, `\`, ":", "报销 系统", "a/b c", ""} {
		got, code, has := naming.Cut(naming.Join(application, `x:\y`))
		assert.Equal(t, []any{application, `x:\y`, true}, []any{got, code, has})
		got, code, has = naming.Cut(naming.Escape(application))
		assert.Equal(t, []any{application, "", false}, []any{got, code, has})
	}
	application, code, _ := naming.Cut(`ACME\crm:invoice`)
	assert.Equal(t, []string{`ACME\crm`, "invoice"}, []string{application, code}, "other backslashes mean themselves")
}
