package password

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/ccojocar/zxcvbn-go/data"
)

// rank is how many of the most common passwords are refused.
const rank = 10_000

// isCommon reports whether a folded password is one of the most common.
func isCommon(folded string) bool {
	_, found := slices.BinarySearch(common(), folded)
	return found
}

// common is the sorted list of those that are long enough to be passwords here: some 9,000, a quarter of a megabyte. It is read
// when first needed. The data is zxcvbn's, where each word stands only in that one of its lists in which it ranks highest: a common
// password that is a yet more common word or name is not in the list of passwords. So the first so many of all lists together
// hold the so many most common passwords.
var common = sync.OnceValue(func() []string {
	var all []string
	for _, name := range []string{"Passwords", "English", "MaleNames", "FemaleNames", "Surnames"} {
		var list struct{ List []string }
		if err := json.Unmarshal(data.MustAsset("data/"+name+".json"), &list); err != nil {
			panic(fmt.Errorf("the list of common passwords: %w", err)) // it is compiled in and tested
		}
		for _, word := range list.List[:min(rank, len(list.List))] {
			if utf8.RuneCountInString(word) >= minLength {
				all = append(all, fold(word))
			}
		}
	}
	slices.Sort(all)
	return slices.Clip(slices.Compact(all))
})
