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

// findSingle answers items that have an id or a login name: by the first of them, of which each belongs to one user at
// most. The record is compared with the other members.
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
		u := byID[list[i].ID]
		if list[i].ID == "" {
			u = byName[list[i].logins()[0]]
		}
		if u != nil && list[i].is(u) {
			answer[i] = Existence{Exists: true, UserID: u.ID}
		}
	}
	return nil
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
		for _, u := range found {
			for _, i := range wanted[u.Text] {
				answer[i] = Existence{Exists: true, UserID: u.ID}
			}
			delete(wanted, u.Text)
		}
		if len(found) < limit {
			return nil
		}
	}
	return nil
}
