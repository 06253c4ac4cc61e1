package user

import (
	"context"
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

// findSingle answers items that have an id or a login name: by the first of them, of which each belongs to one user,
// unless users share it: then it asks for each item. The record is compared with the other members.
func (s *Users) findSingle(ctx context.Context, list []Identity, some []int, answer []Existence) error {
	var ids []string
	var logins []docstore.Value
	for _, i := range some {
		if who := list[i]; who.ID != "" {
			ids = append(ids, who.ID)
		} else {
			logins = append(logins, docstore.Text(who.logins()[0]))
		}
	}
	var docs []Doc
	if len(ids) > 0 {
		found, err := users.FindMany(ctx, s.Store, ids)
		if err != nil {
			return err
		}
		docs = found
	}
	if len(logins) > 0 {
		page, err := users.Page(ctx, s.Store,
			docstore.Query{Filter: docstore.In(byLogin, logins...), Limit: len(logins)})
		if err != nil {
			return err
		}
		docs = append(docs, page.Docs...)
	}
	byID, byName := map[string]*User{}, map[string]*User{}
	for i := range docs {
		u, err := docs[i].Value()
		if err != nil {
			return err
		}
		byID[u.ID] = u
		for _, login := range u.logins() {
			byName[login] = u
		}
	}
	for _, i := range some {
		if who := list[i]; who.ID != "" {
			answer[i].of(byID[who.ID], who)
		} else if u := byName[who.logins()[0]]; u == nil || !slices.Contains(u.sharedKeys(), who.logins()[0]) {
			answer[i].of(u, who)
		} else if who == (Identity{Email: who.Email}) || who == (Identity{Mobile: who.Mobile}) {
			answer[i] = Existence{Exists: true, Several: true}
		} else {
			var err error
			if answer[i], err = s.Exists(ctx, who); err != nil {
				return err
			}
		}
	}
	return nil
}

// of notes a user, who may be nil, if it is the one that is looked for.
func (e *Existence) of(u *User, who Identity) {
	if u != nil && who.is(u) {
		e.add(u.ID)
	}
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
