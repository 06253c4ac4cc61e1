package browsertest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sdkPage has the SDK's modules as `npm run build` makes them, without a bundler.
const sdkPage = `<!doctype html><title>A page with the SDK</title>
<script type="importmap">{"imports": {"@idplatform/sdk": "/dist/runtime/index.js"}}</script>`

// TestSDK: a page of another origin uses the TypeScript SDK.
func TestSDK(t *testing.T) {
	t.Parallel()
	const folder = "../../sdk/typescript"
	_, err := os.Stat(folder + "/dist/runtime/index.js")
	if err != nil && os.Getenv("IDP_TEST_BROWSER_REQUIRED") == "" {
		t.Skip("the SDK is not built: npm run build --prefix sdk/typescript")
	}
	files := http.NewServeMux()
	files.Handle("/dist/", http.FileServer(http.Dir(folder)))
	files.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(sdkPage))
	})
	pages := httptest.NewServer(files)
	t.Cleanup(pages.Close)
	p, err := startPlatform("IDP_CORS_ORIGINS=" + pages.URL)
	require.NoError(t, err)
	b := p.openBrowser(t, "sdk")
	b.do(chromedp.Navigate(pages.URL))

	got := eval[map[string]any](b, fmt.Sprintf(`(async () => {
		delete Crypto.prototype.randomUUID; // as in a page that is not served by HTTPS
		const sdk = await import('@idplatform/sdk');
		const [url, clientId, clientSecret, tenant] = [%q, %q, %q, %q];
		const tokens = sdk.clientCredentials({url, clientId, clientSecret});
		const client = sdk.createClient({url, tokens, tenant});
		for (const username of ['li.wei', 'wang.fang', 'zhao.min']) {
			await sdk.createUser({client, body: {username}, throwOnError: true});
		}
		let [calls, lost] = [0, true];
		const unlucky = sdk.createClient({url, tokens, tenant, fetch: async (request) => {
			calls++;
			const answer = await fetch(request);
			if (request.method === 'POST' && lost) {
				lost = false;
				throw new TypeError('the answer was lost');
			}
			return answer;
		}});
		const again = await sdk.createUser({client: unlucky, body: {username: 'sun.li'}, throwOnError: true});
		const replayed = again.response.headers.get('Idempotent-Replayed');
		const created = calls;
		calls = 0;
		const names = [];
		for await (const user of sdk.pages(sdk.listUsers, {client: unlucky, query: {page_size: 3}})) {
			names.push(user.username);
		}
		const walked = calls;
		const path = {id: again.data.id};
		const {response} = await sdk.getUser({client, path});
		const headers = {'If-Match': response.headers.get('ETag')};
		const changed = await sdk.updateUser({client, path, headers, body: {display_name: 'x'}, throwOnError: true});
		const late = await sdk.updateUser({client, path, headers, body: {display_name: 'y'}});
		const fault = late.error instanceof sdk.ProblemError ? late.error.code : 'none';
		let items = [];
		while (!items.length) {
			({data: {items}} = await sdk.listEvents({client, query: {types: 'user.updated'}, throwOnError: true}));
		}
		const types = items.map((event) => sdk.typedEvent(event).type);
		return {created, replayed, names: names.sort(), walked, name: changed.data.display_name, fault, types};
	})()`, p.url, clientID, clientSecret, b.tenant))
	assert.Equal(t, map[string]any{
		"created": 2.0, "replayed": "true", "names": []any{"li.wei", "sun.li", "wang.fang", "zhao.min"}, "walked": 2.0,
		"name": "x", "fault": "version_mismatch", "types": []any{"idp.user.updated"},
	}, got)
	assert.Empty(t, eval[[]string](b, "faults"))
}
