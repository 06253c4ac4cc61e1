package httpapi

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/services/provisioning/internal/directory"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/message"
)

// A page that is too large ends before the resource that makes it so; one resource that is too large is refused.
func TestAPageIsCutAtWholeResources(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		sizes  []int
		cursor bool
		shown  int
		next   string
	}{
		{[]int{5, 5}, false, 2, ""},
		{[]int{5, 5}, true, 2, "after 2"},
		{[]int{5, 6}, false, 1, ""},
		{[]int{5, 6}, true, 1, "after 1"},
		{[]int{1, 2, 8, 1}, true, 2, "after 2"},
		{[]int{11}, true, 0, ""},
	} {
		left := 10
		list := func(q directory.Query) (page directory.Page[int], _ error) {
			n := len(row.sizes)
			if q.Most > 0 {
				n = q.Most
			}
			for i := range row.sizes[:n] {
				page.Items = append(page.Items, &row.sizes[i])
			}
			page.Total = 100
			if q.HasCursor {
				page.Next = fmt.Sprint("after ", n)
			}
			return page, nil
		}
		got, err := listOf(message.Search{StartIndex: 1}, directory.Query{Count: 4, HasCursor: row.cursor}, list,
			func(size *int) (shownOne, error) {
				if left -= *size; left < 0 {
					return shownOne{}, scim.Invalid(scim.TooMany, "members", "are too many")
				}
				return shownOne{JSON: []byte(`{}`)}, nil
			})
		if row.shown == 0 {
			require.Equal(t, scim.TooMany, scim.TypeOf(err))
			continue
		}
		require.NoError(t, err)
		require.Len(t, got.Resources, row.shown, "%v", row)
		require.EqualValues(t, 100, got.TotalResults)
		require.Equal(t, row.next, got.NextCursor, "%v", row)
	}
}
