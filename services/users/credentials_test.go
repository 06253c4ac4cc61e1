package users_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit"
)

const credentials = "/v1/user-stored-credentials"

// number is a user's id in the form that credentials have.
func number(user object) int64 {
	n, _ := strconv.ParseInt(user["id"].(string), 10, 64)
	return n
}

func credentialOf(user object, provider, id1 string) object {
	return object{"user_id": number(user), "provider_code": provider, "id1": id1}
}

func TestCreateCredential(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	user := addUser(t, c, "li.wei")
	answer := c.Post(credentials, credentialOf(user, "wechat_scan_qr", "微信 <1>"))
	now := s.Clock.Now().String()
	credential := answer.Object()
	require.Equal(t, object{
		"id": credential["id"], "tenant_id": "acme", "user_id": float64(number(user)),
		"provider_code": "wechat_scan_qr", "idp_config_id": 0.0,
		"id1": "微信 <1>", "id2": "", "metadata": "", "status": "1", "username": "", "display_name": "", "version": 1.0,
		"time_created": now, "time_modified": now,
	}, credential)
	require.Equal(t, `"1"`, answer.Header.Get("ETag"))
	require.Equal(t, credential, c.Get(credentials+"/"+credential["id"].(string)).Object())

	all := object{
		"user_id": float64(number(user)), "provider_code": strings.Repeat("字", 256), "idp_config_id": 0.0,
		"id1": strings.Repeat("1", 256), "id2": "two",
		"metadata": strings.Repeat("字", 4096), "status": "0", "username": "u", "display_name": "李伟",
	}
	credential = c.Post(credentials, all).Object()
	for name, value := range all {
		require.Equal(t, value, credential[name], name)
	}
	credential["id1"] = "sent back"
	again := c.Post(credentials, credential).Object()
	require.NotEqual(t, credential["id"], again["id"])
}

func TestCreateCredentialRefuses(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	user, foreign := addUser(t, c, "li.wei"), addUser(t, in(s, "globex"), "foreign")
	for _, row := range map[string]struct {
		member string
		value  any
	}{
		"unknown user": {"user_id", 1}, "foreign user": {"user_id", number(foreign)}, "text": {"user_id", user["id"]},
		"zero": {"user_id", 0}, "negative": {"user_id", -1},
		"fraction": {"user_id", 1.5}, "beyond 2^53": {"user_id", 1 << 53}, "no user": {"user_id", nil},
		"no provider": {"provider_code", ""}, "long provider": {"provider_code", strings.Repeat("x", 257)},
		"control": {"provider_code", "a\x00"},
		"no id1":  {"id1", ""}, "long id1": {"id1", strings.Repeat("x", 257)}, "number": {"id1", 7},
		"long id2":      {"id2", strings.Repeat("x", 257)},
		"long metadata": {"metadata", strings.Repeat("x", 4097)}, "object": {"metadata", object{}},
		"status": {"status", "2"}, "bool": {"status", true},
		"negative connection": {"idp_config_id", -1}, "large connection": {"idp_config_id", 1 << 53},
		"text connection": {"idp_config_id", "1"},
		"long username":   {"username", strings.Repeat("x", 257)}, "line end": {"display_name", "a\nb"},
		"unknown member": {"id3", "x"},
	} {
		body := credentialOf(user, "wechat", "1")
		body[row.member] = row.value
		c.Post(credentials, body).Problem(http.StatusBadRequest, "invalid_parameters", "body."+row.member)
	}
	c.Post(credentials, object{}).Problem(http.StatusBadRequest, "invalid_parameters")
	require.Empty(t, c.Items(credentials, "id"))
}

func TestCredentialsAreUnique(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	a, b := addUser(t, c, "a"), addUser(t, c, "b")
	first := c.Post(credentials, credentialOf(a, "wechat", "1")).ID()
	c.Post(credentials, credentialOf(b, "wechat", "1")).Problem(http.StatusConflict, "already_exists", "body.id1")
	for _, other := range []object{credentialOf(b, "wechat", "2"), credentialOf(b, "dingding", "1"),
		credentialOf(b, "Wechat", "1"), credentialOf(b, "wechat", "１")} {
		c.Post(credentials, other).OK(nil) // providers' ids are compared exactly
	}
	globex := in(s, "globex")
	globex.Post(credentials, credentialOf(addUser(t, globex, "a"), "wechat", "1")).OK(nil)

	second := credentials + "/" + c.Items(credentials+"?id1=2", "id")[0].(string)
	before := c.Get(second).Object()
	c.Patch(second, object{"id1": "1"}).Problem(http.StatusConflict, "already_exists", "body.id1")
	require.Equal(t, before, c.Get(second).Object())
	c.Delete(credentials+"/"+first, nil).OK(nil)
	c.Patch(second, object{"id1": "1"}).OK(nil)
}

func TestListCredentials(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	answerConnections(t, s, map[string]bool{"41": true, "9007199254740991": true})
	a, b := addUser(t, c, "a"), addUser(t, c, "b")
	rows := []object{
		{"user_id": number(a), "provider_code": "wechat", "id1": "1", "id2": "x y&z", "username": "lw",
			"display_name": "李伟", "metadata": strings.Repeat("长", 4096)},
		{"user_id": number(a), "provider_code": "wechat", "id1": "2", "idp_config_id": 41, "status": "0",
			"metadata": `{"union":"id"}`},
		{"user_id": number(b), "provider_code": "dingding", "id1": "1", "idp_config_id": int64(9007199254740991),
			"username": "LW"},
	}
	for _, row := range rows {
		s.Clock.Advance(time.Millisecond)
		c.Post(credentials, row).OK(nil)
	}
	globex := in(s, "globex")
	globex.Post(credentials, credentialOf(addUser(t, globex, "a"), "wechat", "1")).OK(nil)
	for query, want := range map[string][]any{
		"":                                 {"1", "2", "1"},
		"user_id=" + fmt.Sprint(number(a)): {"1", "2"},
		"provider_code=wechat":             {"1", "2"},
		"provider_code=WECHAT":             {},
		"provider_code=wech":               {},
		"idp_config_id=0":                  {"1"},
		"idp_config_id=41":                 {"2"},
		"idp_config_id=9007199254740991":   {"1"},
		"idp_config_id=9007199254740990":   {},
		"id1=1":                            {"1", "1"},
		"id1=1&provider_code=wechat":       {"1"},
		"id2=" + url.QueryEscape("x y&z"):  {"1"},
		"metadata=" + url.QueryEscape(`{"union":"id"}`):          {"2"},
		"metadata=" + url.QueryEscape(strings.Repeat("长", 4096)): {"1"},
		"metadata=" + url.QueryEscape(strings.Repeat("长", 4095)): {},
		"status=0":                 {"2"},
		"status=1&idp_config_id=0": {"1"},
		"username=lw":              {"1"},
		"username=LW":              {"1"},
		"display_name=" + url.QueryEscape("李伟"):          {"1"},
		"display_name=" + url.QueryEscape("李"):           {},
		"user_id=" + fmt.Sprint(number(b)) + "&status=0": {},
		"page_sort=id1[desc],provider_code":              {"2", "1", "1"},
	} {
		require.Equal(t, want, c.Items(credentials+"?"+query, "id1"), query)
	}
	for _, bad := range []string{"user_id=x", "user_id=0", "user_id=-1", "idp_config_id=x", "idp_config_id=-2",
		"status=2", "page_sort=user_id", "page_sort=id2", "user_id=99999999999999999999"} {
		name, _, _ := strings.Cut(bad, "=")
		c.Get(credentials+"?"+bad).Problem(http.StatusBadRequest, "invalid_parameters", "query."+name)
	}
}

func TestUpdateCredential(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	user, other := addUser(t, c, "li.wei"), addUser(t, c, "other")
	created := c.Post(credentials, credentialOf(user, "wechat", "1")).Object()
	url := credentials + "/" + created["id"].(string)
	s.Clock.Advance(time.Second)
	answer := c.Patch(url, object{"id2": "two", "status": "0", "metadata": "线\n2", "display_name": "李伟"})
	changed := answer.Object()
	require.Equal(t, []any{"two", "0", "线\n2", "李伟", 2.0, "1", s.Clock.Now().String()},
		[]any{changed["id2"], changed["status"], changed["metadata"], changed["display_name"], changed["version"],
			changed["id1"], changed["time_modified"]})
	require.Equal(t, `"2"`, answer.Header.Get("ETag"))
	require.Equal(t, changed, c.Patch(url, changed).Object(), "what is sent back as it was read changes nothing")
	for body, location := range map[string]string{
		fmt.Sprintf(`{"user_id":%d}`, number(other)): "body.user_id", `{"user_id":null}`: "body.user_id",
		`{"id1":null}`: "body.id1", `{"id1":""}`: "body.id1",
		`{"provider_code":null}`: "body.provider_code", `{"status":"x"}`: "body.status", `{"id2":7}`: "body.id2",
		`{"idp_config_id":-1}`: "body.idp_config_id", `{"x":1}`: "body.x",
	} {
		c.Patch(url, body).Problem(http.StatusBadRequest, "invalid_parameters", location)
	}
	c.With("If-Match", `"1"`).Patch(url, object{"id2": "x"}).Problem(http.StatusPreconditionFailed, "version_mismatch")
	c.With("If-Match", `"1"`).Delete(url, nil).Problem(http.StatusPreconditionFailed, "version_mismatch")
	require.Equal(t, changed, c.Get(url).Object())
	require.Equal(t, "", c.Patch(url, object{"id2": nil}).Object()["id2"])

	globex := in(s, "globex")
	globex.Get(url).Problem(http.StatusNotFound, "not_found")
	globex.Patch(url, object{"id2": "x"}).Problem(http.StatusNotFound, "not_found")
	globex.Delete(url, nil).Problem(http.StatusNotFound, "not_found")
	require.Equal(t, object{"id": created["id"]}, c.With("If-Match", `"3"`).Delete(url, nil).Object())
	c.Get(url).Problem(http.StatusNotFound, "not_found")
	c.Delete(url, nil).Problem(http.StatusNotFound, "not_found")
	c.Patch(url, object{}).Problem(http.StatusNotFound, "not_found")
}

// answerConnections stands for the identity-sources service, as far as this service asks it.
func answerConnections(t testing.TB, s *testkit.Service, existing map[string]bool) {
	t.Helper()
	type question struct {
		ID string `json:"id"`
	}
	type answer struct {
		Exists bool `json:"exists"`
	}
	require.NoError(t, testkit.AnswerFor(s.Deps.Bus, "identity-sources", "connection-exists",
		func(ctx context.Context, q question) (answer, error) {
			if q.ID == "500" {
				return answer{}, apperr.New(apperr.Internal, "out of order")
			}
			return answer{existing[q.ID] && request.Tenant(ctx) == "acme"}, nil
		}))
}

func TestCredentialOfConnection(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	user := addUser(t, c, "li.wei")
	body := credentialOf(user, "wechat", "1")
	plain := c.Post(credentials, credentialOf(user, "wechat", "2")).Object()
	url := credentials + "/" + plain["id"].(string)
	body["idp_config_id"] = 41

	answer := c.Post(credentials, body) // nobody answers
	answer.Problem(http.StatusServiceUnavailable, "unavailable")
	require.NotEmpty(t, answer.Header.Get("Retry-After"))
	c.Patch(url, object{"idp_config_id": 41}).Problem(http.StatusServiceUnavailable, "unavailable")
	require.Equal(t, []any{plain["id"]}, c.Items(credentials, "id"))
	require.Equal(t, plain, c.Get(url).Object())

	existing := map[string]bool{"41": true}
	answerConnections(t, s, existing)
	c.Post(credentials, object{"user_id": number(user), "provider_code": "wechat", "id1": "1", "idp_config_id": 42}).
		Problem(http.StatusBadRequest, "invalid_parameters", "body.idp_config_id")
	c.Patch(url, object{"idp_config_id": 42}).Problem(http.StatusBadRequest, "invalid_parameters", "body.idp_config_id")
	c.Patch(url, object{"idp_config_id": 500}).Problem(http.StatusInternalServerError, "internal")
	globex := in(s, "globex")
	foreign := credentialOf(addUser(t, globex, "x"), "wechat", "1")
	foreign["idp_config_id"] = 41
	globex.Post(credentials, foreign).Problem(http.StatusBadRequest, "invalid_parameters", "body.idp_config_id")
	require.Equal(t, plain, c.Get(url).Object())

	bound := c.Post(credentials, body).Object()
	require.EqualValues(t, 41, bound["idp_config_id"])
	body["idp_config_id"] = 0
	c.Post(credentials, body).OK(nil) // with another connection it is another identity
	require.EqualValues(t, 41, c.Patch(url, object{"idp_config_id": 41}).Object()["idp_config_id"])
	require.EqualValues(t, 0, c.Patch(url, object{"idp_config_id": nil}).Object()["idp_config_id"])

	delete(existing, "41") // a deleted connection does not hinder changes of other members
	require.EqualValues(t, 41, c.Patch(credentials+"/"+bound["id"].(string), object{"id2": "two"}).
		Object()["idp_config_id"])
	c.Patch(url, object{"idp_config_id": 41}).Problem(http.StatusBadRequest, "invalid_parameters", "body.idp_config_id")
}

// Other services ask whether users exist, and whether a connection is in use.
func TestAnswers(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	answerConnections(t, s, map[string]bool{"41": true})
	user, gone := addUser(t, c, "li.wei"), addUser(t, c, "gone")
	foreign := addUser(t, in(s, "globex"), "foreign")
	c.Post(path(gone, "resign"), nil).OK(nil)
	for _, id1 := range []string{"1", "2"} {
		body := credentialOf(user, "wechat", id1)
		body["idp_config_id"] = 41
		c.Post(credentials, body).OK(nil)
	}
	ctx := request.System(t.Context(), "acme")
	type ids struct {
		IDs []any `json:"ids"`
	}
	existing, err := testkit.Ask[ids](ctx, s.Deps.Bus, "users", "existing",
		ids{[]any{user["id"], gone["id"], foreign["id"], "nobody"}})
	require.NoError(t, err)
	require.Equal(t, ids{[]any{user["id"]}}, existing)
	for tenant, want := range map[string]object{"acme": {"count": 2.0}, "globex": {"count": 0.0}} {
		count, err := testkit.Ask[object](request.System(t.Context(), tenant), s.Deps.Bus, "users",
			"credentials-of-connection", object{"id": 41})
		require.NoError(t, err)
		require.Equal(t, want, count, tenant)
	}
}
