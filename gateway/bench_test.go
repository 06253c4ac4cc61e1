package gateway

func runBenchmarkRole() bool { return false }
