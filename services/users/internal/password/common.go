package password

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

// commonPasswords are those of the 10,000 most common passwords that are long enough to be passwords here, most common
// first. They are the ranks of the list in @zxcvbn-ts/language-common 4.1.3 (MIT; © 2012-2016 Dan Wheeler and Dropbox,
// Inc., © 2021 @zxcvbn-ts).
//
//go:embed common.txt
var commonPasswords string

// isCommon reports whether a folded password is one of the most common.
func isCommon(folded string) bool {
	_, found := slices.BinarySearch(common(), folded)
	return found
}

// common returns the sorted list, which is made when it is first needed.
var common = sync.OnceValue(func() []string {
	list := strings.Fields(commonPasswords)
	for i, word := range list {
		list[i] = fold(word)
	}
	slices.Sort(list)
	return slices.Compact(list)
})
