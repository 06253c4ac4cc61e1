package basic

import "sync"

// AtOnce calls do(0) … do(n-1) at the same time and counts what they return.
func AtOnce[R comparable](n int, do func(i int) R) map[R]int {
	results := make([]R, n)
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-start
			results[i] = do(i)
		})
	}
	close(start)
	all.Wait()
	counts := map[R]int{}
	for _, r := range results {
		counts[r]++
	}
	return counts
}
