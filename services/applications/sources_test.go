package applications_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit"
)

func TestSources(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	app := addApp(t, c, "a")
	idps := func() any { return c.Get(path(app)).Object()["idps"] }
	wechat, mail := object{"config_id": "31", "provider_code": "provider-31"}, object{"config_id": "32",
		"provider_code": "provider-32"}
	assert.Equal(t, object{}, c.Post(path(app, "idp"), object{"config_id": "31"}).Object())
	assert.Equal(t, []any{wechat}, idps())
	c.Post(path(app, "idp"), object{"config_id": "31"}).OK(nil)
	assert.EqualValues(t, 2, c.Get(path(app)).Object()["version"], "nothing changes the second time")
	c.Post(path(app, "idp"), object{"config_ids": []any{"32", "31", "32"}}).OK(nil)
	assert.Equal(t, []any{wechat, mail}, idps())

	c.Post(path(app, "idp"), object{"config_ids": []any{"33", "1048577"}}).
		Problem(http.StatusBadRequest, "invalid_parameters", "body.config_ids[1]")
	c.Post(path(app, "idp"), object{"config_id": "1048577"}).Problem(http.StatusBadRequest, "invalid_parameters",
		"body.config_id")
	for _, body := range []object{{}, {"config_id": "31", "config_ids": []any{"32"}}} {
		c.Post(path(app, "idp"), body).Problem(http.StatusBadRequest, "invalid_parameters", "body")
	}
	c.Post("/v1/applications/1/idp", object{"config_id": "31"}).Problem(http.StatusNotFound, "not_found")
	assert.Equal(t, []any{wechat, mail}, idps())

	count, err := testkit.Ask[object](request.System(t.Context(), "acme"), s.Deps.Bus, "applications", "of-connection",
		object{"id": "31"})
	require.NoError(t, err)
	assert.Equal(t, object{"count": 1.0}, count)
	count, err = testkit.Ask[object](request.System(t.Context(), "globex"), s.Deps.Bus, "applications", "of-connection",
		object{"id": "31"})
	require.NoError(t, err)
	assert.Equal(t, object{"count": 0.0}, count)

	assert.Equal(t, object{}, c.Delete(path(app, "idp/31"), nil).Object())
	c.Delete(path(app, "idp/31"), nil).Problem(http.StatusNotFound, "not_found")
	in(s, "globex").Delete(path(app, "idp/32"), nil).Problem(http.StatusNotFound, "not_found")
	assert.Equal(t, []any{mail}, idps())
}

// While the identity-sources service does not answer, nothing is attached.
func TestSourcesUnanswered(t *testing.T) {
	t.Parallel()
	c := in(alone(t), "acme")
	app := addApp(t, c, "a")
	c.Post(path(app, "idp"), object{"config_id": "31"}).Problem(http.StatusServiceUnavailable, "unavailable")
	unchanged(t, c, app)
}
