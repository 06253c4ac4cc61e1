package service

import "fmt"

// minCache is the least memory that a service needs for its caches, in MiB.
const minCache = 4

// Caches says how much memory the caches of a program's services may take, on SQLite.
type Caches struct {
	MiB int `mapstructure:"mib" doc:"Memory that the services of this program may take together for caches of their SQLite files, in MiB"`
}

// Check refuses a budget that gives one of the program's services less than 4 MiB.
func (c Caches) Check(specs ...Spec) error {
	for _, s := range specs {
		if c.Share(s, specs) < minCache<<20 {
			return fmt.Errorf("cache_memory.mib is too small: each of the %d services needs %d MiB", len(specs),
				minCache)
		}
	}
	return nil
}

// Share returns the part of one service in bytes, by its CacheWeight among those of all services of the program.
func (c Caches) Share(of Spec, all []Spec) int64 {
	total := 0
	for _, s := range all {
		total += s.cacheWeight()
	}
	return int64(c.MiB) << 20 * int64(of.cacheWeight()) / int64(max(1, total))
}

func (s Spec) cacheWeight() int { return max(1, s.CacheWeight) }
