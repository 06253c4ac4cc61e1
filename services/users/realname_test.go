package users_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/services/users"
)

// Resident id numbers that are not assigned; the first is the example in GB 11643.
const (
	residentID = "11010519491231002X"
	anotherID  = "440524188001010014" // born in 1880: well formed, but too old
	womansID   = "110105200001010024"
)

func TestRealName(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	user := addUser(t, c, "li.wei")
	verify := func(body any) *testkit.Answer { return c.Post(path(user, "real-name-verification"), body) }
	number := func(n string) object { return object{"real_name": "李伟", "id_number": n} }
	for _, bad := range map[string]string{
		"check digit": "110105194912310021", "place": "00010519491231002X", "month": "11010519491331002X",
		"day": "110105194902300020", "short": residentID[:17],
		"long": residentID + "0", "letter": "1101051949123100AX", "too old": anotherID, "unborn": "110105299912310020",
		"empty": "", "NUL": residentID + "\x00", "CJK": "身份证号码",
	} {
		answer := verify(number(bad))
		answer.Problem(http.StatusBadRequest, "invalid_parameters")
		require.True(t, bad == "" || !strings.Contains(string(answer.Body), bad), "%s", answer.Body)
	}
	verify(object{"real_name": "", "id_number": residentID}).Problem(http.StatusBadRequest, "invalid_parameters",
		"body.real_name")
	verify(object{"real_name": strings.Repeat("字", 65), "id_number": residentID}).
		Problem(http.StatusBadRequest, "invalid_parameters", "body.real_name")
	verify(object{"real_name": "a\nb", "id_number": "1"}).Problem(http.StatusBadRequest, "invalid_parameters",
		"body.real_name", "body.id_number", "body.id_number")
	verify(object{"id_number": residentID}).Problem(http.StatusBadRequest, "invalid_parameters", "body.real_name")
	unchanged(t, c, user)

	verified := verify(number(" １１０１０５１９４９１２３１００２ｘ ")).Object() // as people type it
	require.Equal(t, []any{"verified", "李伟", "1****************X", 2.0},
		[]any{verified["real_name_status"], verified["real_name"], verified["id_number_masked"], verified["version"]})
	unchanged(t, c, verified)
	require.NotContains(t, verified, "id_number")
	for _, collection := range []string{"users", "accounts"} {
		for _, doc := range testkit.Stored(t, s, "acme", collection) {
			require.NotContains(t, doc, residentID[1:17], collection)
		}
	}
	c.Post("/v1/users/1/real-name-verification", number(residentID)).Problem(http.StatusNotFound, "not_found")
	c.Post(path(user, "resign"), nil).OK(nil)
	verify(number(residentID)).Problem(http.StatusConflict, "invalid_state")
}

func TestRealNameOfOtherDocuments(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	user := addUser(t, c, "li.wei")
	pending := c.Post(path(user, "real-name-verification"), object{"real_name": "Élodie", "id_number": "e1234567",
		"id_type": "passport"}).Object()
	require.Equal(t, []any{"pending", "E******7"}, []any{pending["real_name_status"], pending["id_number_masked"]})
	c.Post(path(user, "real-name-verification"), object{"real_name": "x", "id_number": "123", "id_type": "passport"}).
		Problem(http.StatusBadRequest, "invalid_parameters", "body.id_number")
	c.Post(path(user, "real-name-verification"), object{"real_name": "x", "id_number": strings.Repeat("1", 65),
		"id_type": "passport"}).Problem(http.StatusBadRequest, "invalid_parameters", "body.id_number")
	unchanged(t, c, pending)
}

// The type of a document is the same however it is written.
func TestRealNameTypeInAnyForm(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	ann, bob := addUser(t, c, "ann"), addUser(t, c, "bob")
	verify := func(user object, kind string) *testkit.Answer {
		return c.Post(path(user, "real-name-verification"), object{"real_name": "x", "id_number": "E12345678",
			"id_type": kind})
	}
	verify(ann, "passport").OK(nil)
	for _, kind := range []string{"Passport", "passport ", "ｐａｓｓｐｏｒｔ"} {
		verify(bob, kind).Problem(http.StatusConflict, "already_exists")
	}
	verify(bob, " CN_resident_id").Problem(http.StatusBadRequest, "invalid_parameters", "body.id_number")
}

// A number can be used once in a tenant.
func TestRealNameNumberIsUnique(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	a, b := addUser(t, c, "a"), addUser(t, c, "b")
	foreign := addUser(t, in(s, "globex"), "a")
	claim := object{"real_name": "李伟", "id_number": residentID}
	first := c.Post(path(a, "real-name-verification"), claim).Object()
	c.Post(path(b, "real-name-verification"), claim).Problem(http.StatusConflict, "already_exists", "body.id_number")
	c.Post(path(b, "real-name-verification"), object{"real_name": "x", "id_number": strings.ToLower(residentID)}).
		Problem(http.StatusConflict, "already_exists", "body.id_number")
	unchanged(t, c, b)
	require.Equal(t, first, c.Post(path(a, "real-name-verification"), claim).Object(), "once more changes nothing")
	in(s, "globex").Post(path(foreign, "real-name-verification"), claim).OK(nil)

	// this frees a's first number
	c.Post(path(a, "real-name-verification"), object{"real_name": "李伟", "id_number": womansID}).OK(nil)
	c.Post(path(b, "real-name-verification"), claim).OK(nil)
	accounts, other := testkit.Stored(t, s, "acme", "accounts"), testkit.Stored(t, s, "globex", "accounts")
	require.NotEqual(t, accounts[a["id"].(string)], accounts[b["id"].(string)])
	require.Len(t, other, 1)
}

// verifier is a service that decides about real names as the test says.
type verifier struct {
	*httptest.Server
	answer atomic.Value // string: the body; "" means an error
	asked  atomic.Int64
	last   atomic.Value // map: the claim
}

func startVerifier(t *testing.T) (*verifier, *testkit.Client) {
	v := &verifier{}
	v.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v.asked.Add(1)
		var claim object
		if json.NewDecoder(r.Body).Decode(&claim) == nil {
			v.last.Store(claim)
		}
		answer, _ := v.answer.Load().(string)
		if answer == "" {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(v.Close)
	config := cheap()
	config.RealNameVerifier = v.URL + "/verify?key=secret"
	return v, in(testkit.Start(t, users.Spec(config)), "acme")
}

func TestRealNameVerifierDecides(t *testing.T) {
	t.Parallel()
	v, c := startVerifier(t)
	user, owner := addUser(t, c, "li.wei"), addUser(t, c, "owner")
	claim := object{"real_name": "李伟", "id_number": strings.ToLower(residentID)}

	v.answer.Store(`{"verified":false}`)
	rejected := c.Post(path(user, "real-name-verification"), claim).Object()
	require.Equal(t, []any{"rejected", "1****************X"},
		[]any{rejected["real_name_status"], rejected["id_number_masked"]})
	require.Equal(t, object{"real_name": "李伟", "id_number": residentID, "id_type": "cn_resident_id"}, v.last.Load())

	v.answer.Store(`{"verified":true,"more":1}`)
	require.Equal(t, "verified", c.Post(path(owner, "real-name-verification"), claim).Object()["real_name_status"],
		"a rejected claim does not hold the number")
	c.Post(path(user, "real-name-verification"), claim).Problem(http.StatusConflict, "already_exists", "body.id_number")
	unchanged(t, c, rejected)
	passport := object{"real_name": "Élodie", "id_number": "E1234567", "id_type": "passport"}
	require.Equal(t, "verified", c.Post(path(user, "real-name-verification"), passport).Object()["real_name_status"])

	// Nothing is sent for requests that are refused here, for unknown users, or in a dry run.
	asked := v.asked.Load()
	c.Post(path(user, "real-name-verification"), object{"real_name": "x", "id_number": "110105194912310021"}).
		Problem(http.StatusBadRequest, "invalid_parameters")
	c.Post("/v1/users/1/real-name-verification", claim).Problem(http.StatusNotFound, "not_found")
	c.Post(path(user, "real-name-verification")+"?dry_run=true", passport).OK(nil)
	require.Equal(t, asked, v.asked.Load())
}

func TestRealNameVerifierIsAway(t *testing.T) {
	t.Parallel()
	v, c := startVerifier(t)
	user := addUser(t, c, "li.wei")
	claim := object{"real_name": "李伟", "id_number": residentID}
	away := func() {
		t.Helper()
		answer := c.Post(path(user, "real-name-verification"), claim)
		answer.Problem(http.StatusServiceUnavailable, "unavailable")
		require.NotEmpty(t, answer.Header.Get("Retry-After"))
		require.NotContains(t, string(answer.Body), "secret")
		unchanged(t, c, user)
	}
	for _, answer := range []string{"", "not JSON", "{}", `{"verified":"yes"}`, `{"verified":null}`,
		strings.Repeat(" ", 64<<10) + `{"verified":true}`} {
		v.answer.Store(answer)
		away()
	}
	v.Close()
	away()
}
