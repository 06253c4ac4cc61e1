package user

import (
	"context"
	"maps"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/textindex"
)

// Existences are the answers to many existence checks, in their order.
type Existences struct {
	Items []Existence `json:"items" nullable:"false" doc:"In the order of the request"`
}

// checkedAtOnce is how many users are read together for existence checks. It bounds the memory for their records.
const checkedAtOnce = 250

// ExistMany is Exists for many users. Faults are located at items[n].
func (s *Users) ExistMany(ctx context.Context, list []Identity) (Existences, error) {
	answer := Existences{make([]Existence, len(list))}
	var faults apperr.Faults
	var single, numbered []int // the items with a member that only one user can have, and the others
	for i, who := range list {
		if err := who.given(); err != nil {
			faults.Add(apperr.Item("items", i), "must have one or more of id, username, email, mobile, employee_number")
		}
		if who.ID != "" || len(who.logins()) > 0 {
			single = append(single, i)
		} else {
			numbered = append(numbered, i)
		}
	}
	if err := faults.Err(); err != nil {
		return Existences{}, err
	}
	for some := range slices.Chunk(single, checkedAtOnce) {
		if err := s.findSingle(ctx, list, some, answer.Items); err != nil {
			return Existences{}, err
		}
	}
	return answer, s.findNumbered(ctx, list, numbered, answer.Items)
}

// findSingle answers items that have an id or a login name: by the first of them. The record is compared with the other
// members.
func (s *Users) findSingle(ctx context.Context, list []Identity, some []int, answer []Existence) error {
	var ids []string
	byID, byName := map[string][]int{}, map[string][]int{} // the items that wait for a user
	for _, i := range some {
		if who := list[i]; who.ID != "" {
			ids = append(ids, who.ID)
			byID[who.ID] = append(byID[who.ID], i)
		} else {
			key := who.logins()[0]
			byName[key] = append(byName[key], i)
		}
	}
	found := func(u *User, waiting []int) {
		for _, i := range waiting {
			if list[i].is(u) {
				answer[i].add(u.ID)
			}
		}
	}
	if len(ids) > 0 {
		docs, err := users.FindMany(ctx, s.Store, ids)
		if err != nil {
			return err
		}
		for i := range docs {
			u, err := docs[i].Value()
			if err != nil {
				return err
			}
			found(u, byID[u.ID])
		}
	}
	if len(byName) == 0 {
		return nil
	}
	return users.Each(ctx, s.Store, called(slices.Collect(maps.Keys(byName))...), func(doc Doc) error {
		u, err := doc.Value()
		if err != nil {
			return err
		}
		for _, key := range append(u.logins(), u.sharedKeys()...) {
			found(u, byName[key])
		}
		return nil
	})
}

// findNumbered answers items that have an employee number alone, from the index. Several users may have one: a round
// finds at least one more number, and all of them unless very many users share some.
func (s *Users) findNumbered(ctx context.Context, list []Identity, some []int, answer []Existence) error {
	wanted := map[string][]int{}
	for _, i := range some {
		key := textindex.Key(list[i].EmployeeNumber)
		wanted[key] = append(wanted[key], i)
	}
	for len(wanted) > 0 {
		var numbers []docstore.Value
		for key := range wanted {
			numbers = append(numbers, docstore.Text(key))
		}
		limit := 2 * len(numbers)
		found, err := users.Texts(ctx, s.Store, byEmployeeNumber, docstore.In(byEmployeeNumber, numbers...), limit)
		if err != nil {
			return err
		}
		for n, end := 0, 0; n < len(found); n = end {
			number := found[n].Text
			for end = n + 1; end < len(found) && found[end].Text == number; {
				end++
			}
			if end == limit && end-n == 1 { // the next round tells whether others have it, too
				break
			}
			for _, i := range wanted[number] {
				for _, u := range found[n:min(end, n+2)] {
					answer[i].add(u.ID)
				}
			}
			delete(wanted, number)
		}
		if len(found) < limit {
			return nil
		}
	}
	return nil
}
