package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// scimClient is a SCIM client of a running platform.
type scimClient struct {
	c     *child
	token string
	http  *http.Client
}

// connectSCIM makes a connection and returns its client.
func connectSCIM(t testing.TB, c *child, admin string, connection string) scimClient {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	var made struct{ ID, Token string }
	const path = "/v1/provisioning/connections"
	require.NoError(t, call(client, c, admin, http.MethodPost, path, json.RawMessage(connection), &made))
	token := map[string]string{"name": "test"}
	require.NoError(t, call(client, c, admin, http.MethodPost, path+"/"+made.ID+"/tokens", token, &made))
	return scimClient{c, made.Token, client}
}

// do sends a request. An error means that there was no answer.
func (s scimClient) do(method, path, body string) (status int, answer map[string]any, err error) {
	r, err := http.NewRequest(method, "http://"+s.c.Addr+"/scim/v2"+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	r.Header.Set("Content-Type", "application/scim+json")
	response, err := s.http.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && len(bytes.TrimSpace(text)) > 0 {
		err = json.Unmarshal(text, &answer)
	}
	return response.StatusCode, answer, err
}

func (s scimClient) want(t *testing.T, status int, method, path, body string) map[string]any {
	t.Helper()
	got, answer, err := s.do(method, path, body)
	require.NoError(t, err)
	require.Equal(t, status, got, "%v", answer)
	return answer
}

// The services together: what a client writes is in the records, and what belongs to it is changed nowhere else.
func TestProvisioningWithTheRealServices(t *testing.T) {
	t.Parallel()
	c := startPlatform(t, t.TempDir())
	admin := c.token("--tenant", "acme")
	s := connectSCIM(t, c, admin, `{"name":"Okta","object_code":"okta"}`)
	li := s.want(t, 201, "POST", "/Users", `{"userName":"li.wei","externalId":"1","title":"Guide"}`)["id"].(string)
	wang := s.want(t, 201, "POST", "/Users", `{"userName":"wang.fang","externalId":"2"}`)["id"].(string)
	rd := s.want(t, 201, "POST", "/Groups", `{"displayName":"R&D","members":[{"value":"`+li+`"}]}`)["id"].(string)
	s.want(t, 204, "PATCH", "/Groups/"+rd, `{"Operations":[{"op":"Add","path":"members","value":[{"value":"`+wang+`"}]}]}`)
	s.want(t, 200, "PATCH", "/Users/"+li, `{"Operations":[{"op":"Replace","path":"displayName","value":"李伟"}]}`)

	var user struct {
		DisplayName string `json:"display_name"`
		Email       string
		ManagedBy   map[string]any `json:"managed_by"`
	}
	require.NoError(t, call(s.http, c, admin, "GET", "/v1/users/"+li, nil, &user))
	require.Equal(t, "李伟", user.DisplayName)
	require.NotNil(t, user.ManagedBy)
	err := call(s.http, c, admin, "PATCH", "/v1/users/"+li, map[string]any{"display_name": "x"}, nil)
	require.ErrorContains(t, err, "managed_elsewhere")
	require.NoError(t, call(s.http, c, admin, "PATCH", "/v1/users/"+li, map[string]any{"gender": "m"}, nil))
	var memberships []struct {
		ID   string
		Node string `json:"node_name"`
	}
	require.NoError(t, call(s.http, c, admin, "GET", "/v1/tree-users?user_id="+wang, nil, &memberships))
	require.Len(t, memberships, 1)
	require.Equal(t, "R&D", memberships[0].Node)
	err = call(s.http, c, admin, "DELETE", "/v1/tree-users/"+memberships[0].ID, nil, nil)
	require.ErrorContains(t, err, "managed_elsewhere")
	err = call(s.http, c, admin, "PATCH", "/v1/tree-nodes/"+rd, map[string]any{"name": "x"}, nil)
	require.ErrorContains(t, err, "managed_elsewhere")

	// what others change follows by events
	require.NoError(t, call(s.http, c, admin, "POST", "/v1/users/"+wang+"/resign", map[string]any{}, nil))
	wait.Until(t, func() bool {
		_, wangs, err := s.do("GET", "/Users/"+wang, "")
		_, group, err2 := s.do("GET", "/Groups/"+rd, "")
		members, _ := group["members"].([]any)
		return err == nil && err2 == nil && wangs["active"] == false && len(members) == 1
	})
	s.want(t, 200, "PUT", "/Users/"+wang, `{"userName":"wang.fang","active":true}`)
	s.want(t, 204, "DELETE", "/Groups/"+rd, "")
	require.NoError(t, call(s.http, c, admin, "GET", "/v1/tree-users?user_id="+li, nil, &memberships))
	require.Empty(t, memberships)
}

// A connection also serves the tokens of its OAuth client, and of no other.
func TestTokensOfTheClientOfAConnection(t *testing.T) {
	t.Parallel()
	c := startPlatform(t, t.TempDir())
	admin := c.token("--tenant", "acme")
	made := map[string]client{}
	for _, name := range []string{"Okta", "Other"} {
		var machine client
		app := map[string]any{"name": name, "category": "4", "scopes": []string{"scim"}}
		require.NoError(t, call(http.DefaultClient, c, admin, "POST", "/v1/applications", app, &machine))
		made[name] = machine
	}
	s := connectSCIM(t, c, admin, `{"name":"Okta","client_id":"`+made["Okta"].ID+`"}`)
	var err error
	s.token, _, err = made["Okta"].token(c)
	require.NoError(t, err)
	s.want(t, 200, "GET", "/Users", "")
	s.token, _, err = made["Other"].token(c)
	require.NoError(t, err)
	s.want(t, 403, "GET", "/Users", "")
}

// kill -9 while clients create users leaves no half user: each is linked, or was never made.
func TestKillNineLeavesNoHalfUser(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := startPlatform(t, dir)
	admin := c.token("--tenant", "acme")
	s := connectSCIM(t, c, admin, `{"name":"Okta"}`)
	enough := newGate()
	var writers sync.WaitGroup
	for w := range 8 {
		writers.Go(func() {
			for n := 0; ; n++ {
				body := fmt.Sprintf(`{"userName":"w%d.n%d","externalId":"w%d.n%d"}`, w, n, w, n)
				if _, _, err := s.do("POST", "/Users", body); err != nil {
					return
				}
				if n == 20 {
					enough.close()
				}
			}
		})
	}
	enough.wait(t)
	c.kill()
	writers.Wait()
	s.http.CloseIdleConnections()

	c = startPlatform(t, dir)
	s.c = c
	var records, links float64
	wait.Until(t, func() bool {
		var list struct{ Total float64 }
		if err := call(s.http, c, admin, "GET", "/v1/users?page_size=1", nil, &list); err != nil {
			return false
		}
		_, page, err := s.do("GET", "/Users?count=0", "")
		if err != nil {
			return false
		}
		records = list.Total
		links, _ = page["totalResults"].(float64)
		return records == links
	})
	require.Greater(t, links, 100.0)
}
