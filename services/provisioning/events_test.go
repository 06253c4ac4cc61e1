package provisioning_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// What others change comes by events; those that are older than the copy change nothing.
func TestOthersChangesFollow(t *testing.T) {
	t.Parallel()
	c := connect(t, nil)
	id := c.addUser("li.wei", nil)
	group := c.addGroup("Platform", id)
	tell := func(kind, subject string, sequence int64, data object) {
		publish(t, c.service, kind, subject, sequence, data)
	}
	record := c.world.user("acme", id)
	record["display_name"], record["version"] = "old news", 1
	tell("user.updated", id, 5, object{"record": record})
	record["display_name"], record["version"] = "news", 2
	tell("user.updated", id, 500, object{"record": record})
	wait.Until(t, func() bool {
		return c.want(http.StatusOK, http.MethodGet, usersPath+"/"+id, nil)["displayName"] == "news"
	})
	record["display_name"] = "old news"
	tell("user.updated", id, 499, object{"record": record})
	membership := c.world.of("acme").members[group+"/"+id]
	tell("membership.deleted", membership.ID, 500, object{"record": object{}, "memberships": []any{object{
		"id": membership.ID, "object_code": "okta", "node_id": group, "user_id": id, "sequence": "500"}}})
	wait.Until(t, func() bool { return len(c.members(group)) == 0 })
	tell("membership.created", membership.ID, 10, object{"record": object{"object_code": "okta", "node_id": group,
		"user_id": id}})
	node := c.world.of("acme").nodes[group]
	node["name"] = "Core"
	tell("node.updated", group, 500, object{"record": node})
	wait.Until(t, func() bool {
		return c.want(http.StatusOK, http.MethodGet, groupsPath+"/"+group, nil)["displayName"] == "Core"
	})
	require.Empty(t, c.members(group), "a membership that has ended does not come back")
	require.Equal(t, "news", c.want(http.StatusOK, http.MethodGet, usersPath+"/"+id, nil)["displayName"])
	tell("user.deleted", id, 510, object{"record": record})
	wait.Until(t, func() bool { return c.Get(usersPath+"/"+id).Status == http.StatusNotFound })
}

// publish sends an event as another service does.
func publish(t testing.TB, s *testkit.Service, kind, id string, sequence int64, data object) {
	t.Helper()
	noun, action, _ := strings.Cut(kind, ".")
	event, err := json.Marshal(object{
		"specversion": "1.0", "id": fmt.Sprint(kind, "-", id, "-", sequence), "source": "/" + noun,
		"type":    "idp." + kind,
		"subject": id, "time": s.Clock.Now(), "tenantid": "acme", "sequence": fmt.Sprint(sequence),
		"datacontenttype": "application/json", "data": data,
	})
	require.NoError(t, err)
	_, err = s.Deps.Bus.JetStream().Publish(t.Context(), "idp.events.acme."+noun+"."+action, event)
	require.NoError(t, err)
}
