package testkit

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// SelectsByIDs checks what the ids of the list at path select. foreign is a client of another tenant; create makes a
// record as a client, and returns its id.
func SelectsByIDs(t *testing.T, c, foreign *Client, path string, create func(c *Client) string) {
	t.Helper()
	a, b, others := create(c), create(c), create(foreign)
	create(c) // one that is never asked for
	path += "?ids="
	require.Equal(t, []any{a, b}, c.Items(path+b+",%20"+a+"%20,"+others+",nobody,"+a, "id"))
	require.Equal(t, []any{b}, c.Items(path+b, "id"))
	require.Empty(t, c.Items(path+others, "id"))
	require.Equal(t, []any{others}, foreign.Items(path+others+","+a, "id"))
	require.Empty(t, c.Items(path+",", "id"))
	require.Len(t, c.Items(path+a+strings.Repeat(",1", maxIDs-1), "id"), 1)
	c.Get(path+a+strings.Repeat(",1", maxIDs)).Problem(http.StatusBadRequest, "invalid_parameters", "query.ids")

	// Ids in another order are the same list, so its pages go on.
	first := c.Get(path + a + "," + b + "&page_size=1").Object()
	require.Equal(t, 2., first["total"])
	require.Equal(t, []any{b}, c.Items(path+b+","+a+"&page_size=1&page_token="+first["next_page_token"].(string), "id"))
	c.Get(path+b+"&page_token="+first["next_page_token"].(string)).
		Problem(http.StatusBadRequest, "invalid_parameters", "query.page_token")
}

// maxIDs is how many ids a list takes.
const maxIDs = 200
