package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// send posts JSON and decodes the response, which must be 200.
func send(b testing.TB, c *child, token, path string, body, into any) {
	b.Helper()
	status, text := exchange(b, c, token, path, body)
	require.Equal(b, http.StatusOK, status, "%s: %s", path, text)
	require.NoError(b, json.Unmarshal(text, into))
}

func exchange(b testing.TB, c *child, token, path string, body any) (status int, answer []byte) {
	b.Helper()
	text, err := json.Marshal(body)
	require.NoError(b, err)
	r, err := http.NewRequest(http.MethodPost, "http://"+c.Addr+path, bytes.NewReader(text))
	require.NoError(b, err)
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	require.NoError(b, err)
	defer response.Body.Close()
	answer, err = io.ReadAll(response.Body)
	require.NoError(b, err)
	return response.StatusCode, answer
}

// company is a tree of 100 divisions with 100 teams each, and the time it took to create it.
type company struct {
	root             string
	divisions, teams []string
	nodes, members   time.Duration
}

const memberships = 20_000

// createCompany creates a company whose teams have two members each; each user is in four teams.
func createCompany(b testing.TB, c *child, token string) company {
	b.Helper()
	type object = map[string]any
	var company company
	var made struct {
		Root string `json:"root_node_id"`
	}
	send(b, c, token, "/v1/core-objects", object{"code": "company", "name": "Acme"}, &made)
	company.root = made.Root
	begun := time.Now()
	var items []object
	add := func() (ids []string) {
		var added page
		send(b, c, token, "/v1/batch/tree-nodes", object{"object_code": "company", "items": items}, &added)
		for _, item := range added.Items {
			ids = append(ids, item.ID)
		}
		items = nil
		return ids
	}
	for n := range 100 {
		items = append(items, object{"name": fmt.Sprintf("Division %d 事业部", n), "seq": n})
	}
	company.divisions = add()
	for _, division := range company.divisions {
		for n := range 100 {
			items = append(items, object{"name": fmt.Sprintf("平台研发 Team %d", n), "seq": n, "parent_id": division})
		}
		if len(items) == 1000 {
			company.teams = append(company.teams, add()...)
		}
	}
	company.nodes = time.Since(begun)

	importUsers(b, c, token, people(0, memberships/4))
	var users []string
	for next := ""; len(users) < memberships/4; {
		var list page
		fetch(b, c, token, "/v1/users?page_size=200&page_token="+next, &list)
		for _, item := range list.Items {
			users = append(users, item.ID)
		}
		next = list.Next
	}
	begun = time.Now()
	for n := range memberships {
		items = append(items, object{
			"node_id": company.teams[n%len(company.teams)],
			"user_id": users[(n+n/len(company.teams))*7%len(users)],
		})
		if len(items) == 1000 {
			var added page
			send(b, c, token, "/v1/batch/tree-users", object{"items": items}, &added)
			items = nil
		}
	}
	company.members = time.Since(begun)
	return company
}

func BenchmarkOrganization(b *testing.B) {
	yard := startYardstick(b)
	c := startPlatform(b, b.TempDir())
	token := c.token()
	company := createCompany(b, c, token)
	becomeCalm(c)
	b.Run("batches of 1000", func(b *testing.B) {
		b.ReportMetric(float64(len(company.divisions)+len(company.teams))/company.nodes.Seconds(), "nodes/s")
		b.ReportMetric(memberships/company.members.Seconds(), "members/s")
		b.ReportMetric(0, "ns/op")
	})
	for _, read := range []struct {
		name, path string
		of         []string
	}{
		{"get", "", company.teams},
		{"children page of 50", "/children?page_size=50", company.divisions},
		{"nodes above", "/parent", company.teams},
		{"members of a team", "/users?page_size=50", company.teams},
		{"members of a division and below, page of 50", "/users?recursive=true&page_size=50", company.divisions},
		{"members of all, page of 50", "/users?recursive=true&page_size=50", []string{company.root}},
	} {
		requests := make([][]byte, len(read.of))
		for i, id := range read.of {
			requests[i] = get("/v1/tree-nodes/"+id+read.path, token)
		}
		b.Run(read.name, func(b *testing.B) {
			share(b, yard, c, func(w, n int) []byte { return requests[(w*31+n)%len(requests)] })
		})
	}
	b.Run("after the load", func(b *testing.B) { b.ReportMetric(c.rss(), "MiB"); b.ReportMetric(0, "ns/op") })
}
