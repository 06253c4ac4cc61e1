package browsertest

import (
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/chromedp/cdproto/cdp"
)

// TestMemory scrolls through 100 pages of children: the heap stays as large as what is on the screen needs.
func TestMemory(t *testing.T) {
	t.Parallel()
	const pages, pageSize, rowHeight = 100, 200, 34
	b := signedIn(t, "memory")
	makeNodes(t, b.platform, b.tenant, "wide", pages*pageSize)
	b.open("tree/wide")
	b.see("Node 00001")
	keyboard{}.reach(b, "document.querySelector('[role=tree]')")
	b.press(kb.Home + kb.ArrowDown)
	var after []float64
	for page := range pages {
		b.waitFor(fmt.Sprintf(`(() => { const tree = document.querySelector('[role=tree]');
			tree.scrollTop = %d; return tree.textContent.includes('Node %05d'); })()`,
			(page*pageSize+100)*rowHeight, page*pageSize+105))
		if page == pages/2 || page == pages-1 {
			b.rest()
			after = append(after, b.heap())
		}
	}
	t.Logf("heap after %d pages %.1f MB, after %d pages %.1f MB", pages/2, after[0]/1e6, pages, after[1]/1e6)
	assert.Less(t, after[1], 1.1*after[0])
	assert.Less(t, eval[int64](b, "document.querySelectorAll('*').length"), int64(3000))
	b.press(kb.ArrowDown) // on from where the cursor was, though its page is dropped
	b.activeNode("Node 00001")
	b.clean()
}

// heap is the size of what the page's scripts hold.
func (b *browser) heap() float64 {
	b.t.Helper()
	for range 3 {
		_, err := chromedp.Call(b.ctx, heapprofiler.CollectGarbage, cdp.Empty{})
		require.NoError(b.t, err)
	}
	usage, err := chromedp.Call(b.ctx, runtime.GetHeapUsage, cdp.Empty{})
	require.NoError(b.t, err)
	return usage.UsedSize
}

// makeNodes makes a tree whose root has many children.
func makeNodes(t testing.TB, p *platform, tenant, code string, n int) {
	t.Helper()
	p.call(t, tenant, "POST", "/v1/core-objects", map[string]string{"code": code, "name": code})
	for from := 0; from < n; from += 1000 {
		items := make([]map[string]string, min(1000, n-from))
		for i := range items {
			items[i] = map[string]string{"name": fmt.Sprintf("Node %05d", from+i), "parent_id": ""}
		}
		p.call(t, tenant, "POST", "/v1/batch/tree-nodes", map[string]any{"object_code": code, "items": items})
	}
}
