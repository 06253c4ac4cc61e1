package member

import (
	"context"
	"maps"
	"slices"

	"github.com/idplatform/idplatform/services/questions"
)

// maxIDs is the largest number of ids in a question to the users service, and in its answer.
const maxIDs = 1000

// ask asks the users service which users a keyword finds, among ids if that is not nil.
func (l *listing) ask(ctx context.Context, ids []string) (found []string, more bool, err error) {
	a, err := questions.MatchingUsers.Ask(ctx, l.Bus, questions.Search{Keyword: l.Keyword, IDs: ids, Limit: maxIDs})
	return a.IDs, a.More, err
}

// found keeps the users that the keyword finds.
func (l *listing) found(ctx context.Context, users []user) ([]user, error) {
	ids := make([]string, len(users))
	for i := range users {
		ids[i] = users[i][0].user
	}
	wanted := map[string]bool{}
	for part := range slices.Chunk(ids, maxIDs) {
		listed, _, err := l.ask(ctx, part)
		if err != nil {
			return nil, err
		}
		for _, id := range listed {
			wanted[id] = true
		}
	}
	kept := users[:0]
	for i := range users {
		if wanted[ids[i]] {
			kept = append(kept, users[i])
		}
	}
	return kept, nil
}

// matching returns the page of the users whom the keyword finds, and their total, if it finds few users or the node has
// few. Otherwise few is false, and the page must be found by a walk.
func (l *listing) matching(ctx context.Context) (page []user, total int64, few bool, err error) {
	ids, more, err := l.ask(ctx, nil)
	if err != nil {
		return nil, -1, false, err
	}
	if more {
		users, all, err := l.userIDs(ctx, MaxCounted)
		if err != nil || !all {
			return nil, -1, false, err
		}
		ids = nil
		for part := range slices.Chunk(users, maxIDs) {
			listed, _, err := l.ask(ctx, part)
			if err != nil {
				return nil, -1, false, err
			}
			ids = append(ids, listed...)
		}
	}
	all, err := l.gather(ctx, ids)
	if err != nil {
		return nil, -1, false, err
	}
	users := slices.SortedFunc(maps.Values(all), func(a, b user) int { return a[0].compare(b[0].position) })
	total = int64(len(users))
	if l.after.Path != "" {
		users = slices.DeleteFunc(users, func(u user) bool { return u[0].compare(l.after) <= 0 })
	}
	users = users[min(l.Offset, len(users)):]
	return users[:min(l.Limit+1, len(users))], total, true, nil
}
