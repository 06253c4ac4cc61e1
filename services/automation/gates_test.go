package automation_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/services/automation"
)

// Two replicas write objects while their bucket is deleted again and again: unless it is forced, a deletion never takes
// an object with it, and no object is left without a bucket.
func TestBucketsAreDeletedBesideWriters(t *testing.T) {
	t.Parallel()
	s := start(t)
	other := s.Replica(automation.Spec(automation.DefaultConfig()))
	const writers, each = 6, 30
	var writing sync.WaitGroup
	written := make([]map[string]bool, writers)
	for i := range writers {
		written[i] = map[string]bool{}
		c := kvOf([]*testkit.Service{s, other}[i%2], "acme")
		writing.Go(func() {
			for n := range each {
				key := fmt.Sprint(i, "-", n)
				answer := c.Post(objectsPath, object{"key": key, "value": n})
				if answer.Status == http.StatusOK {
					written[i][key] = true
				} else if answer.Status != http.StatusConflict { // the bucket is being deleted
					t.Errorf("%d %s", answer.Status, answer.Body)
				}
				if n%3 == 2 && n < each-3 { // so that the bucket is empty now and then
					for key := range written[i] {
						if answer := c.Delete(at(key), nil); answer.Status != http.StatusOK {
							t.Errorf("an acknowledged object is gone: %d %s", answer.Status, answer.Body)
						}
					}
					clear(written[i])
				}
			}
		})
	}
	c := kvOf(s, "acme")
	for range 4 * each {
		answer := c.Delete(boxPath, nil)
		require.Contains(t, []int{http.StatusOK, http.StatusConflict, http.StatusNotFound}, answer.Status)
	}
	writing.Wait()
	for i := range written {
		for key := range written[i] {
			c.Get(at(key)).OK(nil)
			c.Get(boxPath).OK(nil)
		}
	}
}

// A bucket can be changed while many connections write to it all the time.
func TestBucketsAreChangedBesideWriters(t *testing.T) {
	t.Parallel()
	s := start(t)
	other := s.Replica(automation.Spec(automation.DefaultConfig()))
	c := kvOf(s, "acme")
	put(c, boxPath, object{}).OK(nil)
	ended := make(chan struct{})
	var writing sync.WaitGroup
	for i := range 16 {
		c := kvOf([]*testkit.Service{s, other}[i%2], "acme")
		writing.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-ended:
					return
				default:
				}
				answer := c.Post(objectsPath, object{"key": fmt.Sprint(i, "-", n), "value": n})
				if answer.Status != http.StatusOK {
					t.Errorf("%d %s", answer.Status, answer.Body)
				}
			}
		})
	}
	for n := range 10 {
		answer := put(c, boxPath, object{"history": n})
		if answer.Status != http.StatusOK {
			t.Errorf("%d %s", answer.Status, answer.Body)
		}
	}
	close(ended)
	writing.Wait()
}

// What one replica knows of a bucket does not outlive a change that another makes, nor a new bucket of the same name.
func TestReplicasSeeChangedBuckets(t *testing.T) {
	t.Parallel()
	s := start(t)
	here, there := kvOf(s, "acme"), kvOf(s.Replica(automation.Spec(automation.DefaultConfig())), "acme")
	here.Post(objectsPath, object{"key": "a", "value": "long"}).OK(nil)
	put(here, at("a"), object{"value": "longer"}).OK(nil)
	put(there, boxPath, object{"max_object_bytes": 3, "history": 2}).OK(nil)
	here.Post(objectsPath, object{"key": "b", "value": "long"}).Problem(http.StatusBadRequest, "invalid_parameters",
		"body.value")
	require.Equal(t, 1.0, put(here, at("a"), object{"value": 1}).Object()["kept_versions"])
	there.Delete(boxPath+"?force=true", nil).OK(nil)
	put(there, boxPath, object{"ttl_seconds": 60}).OK(nil)
	made := here.Post(objectsPath, object{"key": "b", "value": "long"}).Object()
	require.NotNil(t, made["time_expires"])
	there.Delete(boxPath+"?force=true", nil).OK(nil)
	here.Post(objectsPath+"?dry_run=true", object{"key": "c", "value": 1}).OK(nil)
	here.Get(boxPath).Problem(http.StatusNotFound, "not_found")
	here.Delete(boxPath, nil).Problem(http.StatusNotFound, "not_found")
}
