package config

import "slices"

// didYouMean suggests the most similar of the known names, if one is similar enough.
func didYouMean(name string, known []string, dashes string) string {
	slices.Sort(known)
	best, limit := "", max(1, len(name)/5)+1
	for _, candidate := range known {
		if d := distance(name, candidate); d < limit {
			best, limit = candidate, d
		}
	}
	if best == "" {
		return ""
	}
	return " (did you mean " + dashes + best + "?)"
}

// distance counts the insertions, deletions, substitutions and swaps of adjacent bytes that turn a into b.
func distance(a, b string) int {
	if len(a) > 100 { // names are shorter than this
		return len(a)
	}
	var before, above, row []int
	for i := range len(a) + 1 {
		row = make([]int, len(b)+1)
		for j := range row {
			switch {
			case i == 0 || j == 0:
				row[j] = i + j
			case a[i-1] == b[j-1]:
				row[j] = above[j-1]
			default:
				row[j] = 1 + min(above[j-1], above[j], row[j-1])
				if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
					row[j] = min(row[j], 1+before[j-2])
				}
			}
		}
		before, above = above, row
	}
	return row[len(b)]
}
