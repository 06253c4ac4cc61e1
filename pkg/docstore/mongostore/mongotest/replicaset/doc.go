// Package replicaset simulates a MongoDB replica set for tests.
package replicaset
