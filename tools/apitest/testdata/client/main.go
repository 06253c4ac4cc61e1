// Program client calls a running platform through a generated client. Its arguments are the platform's URL and a
// token.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"github.com/oapi-codegen/nullable"

	"github.com/idplatform/idplatform/tools/apitest/testdata/client/api"
)

func main() {
	if err := run(context.Background(), os.Args[1], os.Args[2]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("all operations answered")
}

// run returns the first response that is not as expected.
func run(ctx context.Context, url, token string) error {
	c, err := api.NewClientWithResponses(url, api.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+token)
		return nil
	}))
	if err != nil {
		return err
	}
	u := &use{ClientWithResponses: c}
	for _, step := range []func(context.Context){u.createUser, u.changeUser, u.organization, u.refusalAndDelete} {
		if step(ctx); u.err != nil {
			return u.err
		}
	}
	return nil
}

// use is a client, the id of the user that it has created, and its first error.
type use struct {
	*api.ClientWithResponses
	id  string
	err error
}

// want records an error unless the call succeeded and its response is as expected.
func (u *use) want(operation string, failed error, ok bool, body []byte) {
	if u.err == nil && failed != nil {
		u.err = fmt.Errorf("%s: %w", operation, failed)
	}
	if u.err == nil && !ok {
		u.err = fmt.Errorf("%s: %s", operation, body)
	}
}

func (u *use) createUser(ctx context.Context) {
	created, failed := u.CreateUserWithResponse(ctx, &api.CreateUserParams{IdempotencyKey: text("k")},
		api.NewUser{Username: "li.wei", DisplayName: text("李伟"), Email: text("li@acme.test")})
	u.want("create-user", failed,
		created != nil && created.JSON200 != nil && created.JSON200.Username == "li.wei", bodyOf(created))
	if u.err != nil {
		return
	}
	u.id = *created.JSON200.Id
}

func (u *use) changeUser(ctx context.Context) {
	change := api.UserPatch{
		Email: nullable.NewNullNullable[string](), Gender: nullable.NewNullableWithValue("f"),
	}
	patched, failed := u.UpdateUserWithResponse(ctx, u.id, &api.UpdateUserParams{IfMatch: text(`"1"`)}, change)
	u.want("update-user", failed, patched != nil && patched.JSON200 != nil && patched.JSON200.Email == "" &&
		patched.JSON200.DisplayName == "李伟" && patched.HTTPResponse.Header.Get("ETag") == `"2"`, bodyOf(patched))

	shown, failed := u.GetUserWithResponse(ctx, u.id, nil)
	u.want("get-user", failed, shown != nil && shown.JSON200 != nil && shown.JSON200.Gender == "f", bodyOf(shown))

	locked, failed := u.LockUserWithResponse(ctx, u.id, nil, api.LockUserRequest{Reason: text("on leave")})
	u.want("lock-user", failed, locked != nil && locked.JSON200 != nil && locked.JSON200.Locked, bodyOf(locked))

	list, failed := u.ListUsersWithResponse(ctx,
		&api.ListUsersParams{Keyword: text("li"), Locked: flag[api.ListUsersParamsLocked]("true")})
	u.want("list-users", failed,
		list != nil && list.JSON200 != nil && len(list.JSON200.Items) == 1 && *list.JSON200.Total == 1, bodyOf(list))

	name, failed := u.CheckLoginNameWithResponse(ctx, nil, api.CheckLoginNameRequest{LoginName: "li.wei"})
	u.want("check-login-name", failed, name != nil && name.JSON200 != nil && !name.JSON200.Available, bodyOf(name))
}

func (u *use) organization(ctx context.Context) {
	tree, failed := u.CreateCoreObjectWithResponse(ctx, nil, api.NewCoreObject{Code: "company", Name: "Acme"})
	u.want("create-core-object", failed, tree != nil && tree.JSON200 != nil, bodyOf(tree))

	node, failed := u.CreateTreeNodeWithResponse(ctx, nil,
		api.NewTreeNode{ObjectCode: "company", Name: "平台组", ParentId: ""})
	u.want("create-tree-node", failed, node != nil && node.JSON200 != nil && *node.JSON200.Depth == 1, bodyOf(node))
	if u.err != nil {
		return
	}

	member, failed := u.AddTreeUserWithResponse(ctx, nil, api.NewMembership{NodeId: *node.JSON200.Id, UserId: u.id})
	u.want("add-tree-user", failed, member != nil && member.JSON200 != nil, bodyOf(member))

	members, failed := u.ListTreeNodeUsersWithResponse(ctx, *node.JSON200.Id, nil)
	u.want("list-tree-node-users", failed,
		members != nil && members.JSON200 != nil && len(members.JSON200.Items) == 1, bodyOf(members))
}

func (u *use) refusalAndDelete(ctx context.Context) {
	refused, failed := u.CreateUserWithResponse(ctx, nil, api.NewUser{Username: "li.wei"})
	u.want("create-user again", failed, refused != nil && refused.ApplicationproblemJSON409 != nil &&
		refused.ApplicationproblemJSON409.Code == "already_exists", bodyOf(refused))

	deleted, failed := u.DeleteUserWithResponse(ctx, u.id, nil)
	u.want("delete-user", failed,
		deleted != nil && deleted.JSON200 != nil && deleted.JSON200.Id == u.id, bodyOf(deleted))
}

func text(s string) *string { return &s }

func flag[T ~string](value T) *T { return &value }

// bodyOf prints a response.
func bodyOf(answer any) []byte { return fmt.Appendf(nil, "%+v", answer) }
