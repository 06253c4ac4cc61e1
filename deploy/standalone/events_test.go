package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit/drive"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// The platform is killed again and again while changes flow to 20 subscriptions, 5 of which fail half of the time:
// each gets every event, in the order of each record, and the audit log has every change once. IDP_TEST_CRASH_CHANGES
// makes it larger.
func TestKillNineLosesNoDelivery(t *testing.T) {
	t.Parallel()
	changes := drive.Changes(t)
	const kills = 2
	hooks := drive.NewWebhooks(t)
	dir := t.TempDir()
	env := []string{"IDP_OUTBOUND_ALLOW_PRIVATE=true", "IDP_WEBHOOK_RETRY_DELAYS=" + drive.RetryDelays}
	c := startPlatform(t, dir, env...)
	client := c.client("acme")
	hooks.Subscribe(t, client, 15, 5)
	acknowledged := 0
	for kill := range kills + 1 {
		if kill > 0 {
			c = startPlatform(t, dir, env...)
			client.URL = "http://" + c.Addr
		}
		enough := func() {}
		if kill < kills {
			enough = c.kill // in the middle of other writers' requests
		}
		acknowledged += client.ChangeUsers(fmt.Sprint("round", kill), changes/(kills+1), enough)
	}
	told := client.Told(t, acknowledged)
	assert.GreaterOrEqual(t, len(told), acknowledged)
	hooks.RequireAll(t, told)
	client.RequireAudited(t, told)
	c.stop()
}

// client is a client of a tenant.
func (c *child) client(tenant string) *drive.Client {
	c.t.Helper()
	return &drive.Client{URL: "http://" + c.Addr, Token: c.token("--tenant", tenant), HTTP: http.DefaultClient}
}

// The NATS user of a subscription reads its events with its durable consumer, and nothing else.
func TestUserOfASubscription(t *testing.T) {
	t.Parallel()
	c := startPlatform(t, t.TempDir())
	client := c.client("acme")
	var users []natsUser
	for _, name := range []string{"one", "two"} {
		answer, err := client.Do(http.MethodPost, "/v1/event-subscriptions",
			fmt.Sprintf(`{"name":%q,"event_types":["user.*"],"delivery":{"type":"nats"}}`, name))
		require.NoError(t, err)
		var made natsUser
		require.NoError(t, json.Unmarshal(answer, &made))
		users = append(users, made)
	}
	_, err := client.Do(http.MethodPost, "/v1/users", `{"username":"li.wei"}`)
	require.NoError(t, err)
	url, err := os.ReadFile(filepath.Join(c.Dir, "nats.url"))
	require.NoError(t, err)
	_, address, _ := strings.Cut(strings.TrimSpace(string(url)), "@")
	for i, user := range users {
		_, err := nats.Connect("nats://"+address, nats.UserInfo(user.Delivery.User, "wrong"))
		require.ErrorIs(t, err, nats.ErrAuthorization)
		refused := make(chan error, 1)
		nc, err := nats.Connect("nats://"+address, nats.UserInfo(user.Delivery.User, user.Delivery.Secret),
			nats.CustomInboxPrefix("_INBOX."+user.ID),
			nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
		require.NoError(t, err)
		defer nc.Close()
		js, err := jetstream.New(nc)
		require.NoError(t, err)
		var consumer jetstream.Consumer
		wait.Until(t, func() bool { // the service makes the consumer soon after the subscription
			consumer, err = js.Consumer(t.Context(), "IDP_SUBSCRIPTIONS", "s-"+user.ID)
			return err == nil
		})
		m, err := consumer.Next(jetstream.FetchMaxWait(wait.Long))
		require.NoError(t, err)
		assert.Equal(t, user.Delivery.Subject, m.Subject())
		assert.Contains(t, string(m.Data()), "idp.user.created")
		require.NoError(t, m.DoubleAck(t.Context()))

		other := users[1-i]
		_, err = nc.SubscribeSync(other.Delivery.Subject)
		require.NoError(t, err)
		require.ErrorIs(t, <-refused, nats.ErrPermissionViolation)
		require.NoError(t, nc.PublishRequest("$JS.API.CONSUMER.MSG.NEXT.IDP_SUBSCRIPTIONS.s-"+other.ID,
			"_INBOX."+user.ID+".x", nil))
		require.ErrorIs(t, <-refused, nats.ErrPermissionViolation)
	}
	c.stop()
}

// natsUser is a subscription over NATS with what its user needs.
type natsUser struct {
	ID       string
	Delivery struct{ Subject, User, Secret string }
}
