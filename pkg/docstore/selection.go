package docstore

import (
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
)

// Items are the items of a comma list, which may have blanks around them; nil for "".
func Items(list string) []string {
	if list == "" {
		return nil
	}
	items := strings.Split(list, ",")
	for i, item := range items {
		items[i] = strings.TrimSpace(item)
	}
	return items
}

// maxIDs is how many ids a list takes.
const maxIDs = 200

// Selection is the part of a filter that selects records by their ids; see IDOrAll.
type Selection struct {
	IDs string `query:"ids" maxLength:"8192" doc:"Comma list of up to 200 ids; those of no record are left out"`
}

// ReadIDs returns the ids, nil if none are given, and adds a fault if they are too many. They are sorted: the order in
// which they are given must not make a different list, whose pages another token continues.
func (s Selection) ReadIDs(faults *apperr.Faults) []string {
	ids := Items(s.IDs)
	faults.Check(len(ids) <= maxIDs, "ids", "must have at most %d ids", maxIDs)
	slices.Sort(ids)
	return slices.Compact(ids)
}
