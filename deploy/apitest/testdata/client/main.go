// Program client calls a running platform through a generated client. Its arguments are the platform's URL and a
// token.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"github.com/oapi-codegen/nullable"

	"github.com/idplatform/idplatform/deploy/apitest/testdata/client/api"
)

func main() {
	if err := run(context.Background(), os.Args[1], os.Args[2]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("all operations answered")
}

// run returns the first response that is not as expected.
func run(ctx context.Context, url, token string) (err error) {
	c, err := api.NewClientWithResponses(url, api.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+token)
		return nil
	}))
	if err != nil {
		return err
	}
	want := func(operation string, failed error, ok bool, body []byte) {
		if err == nil && failed != nil {
			err = fmt.Errorf("%s: %w", operation, failed)
		}
		if err == nil && !ok {
			err = fmt.Errorf("%s: %s", operation, body)
		}
	}
	text := func(s string) *string { return &s }

	created, failed := c.CreateUserWithResponse(ctx, &api.CreateUserParams{IdempotencyKey: text("k")},
		api.NewUser{Username: "li.wei", DisplayName: text("李伟"), Email: text("li@acme.test")})
	want("create-user", failed,
		created != nil && created.JSON200 != nil && created.JSON200.Username == "li.wei", bodyOf(created))
	if err != nil {
		return err
	}
	id := *created.JSON200.Id

	change := api.UserPatch{
		Email: nullable.NewNullNullable[string](), Gender: nullable.NewNullableWithValue("f"),
	}
	patched, failed := c.UpdateUserWithResponse(ctx, id, &api.UpdateUserParams{IfMatch: text(`"1"`)}, change)
	want("update-user", failed, patched != nil && patched.JSON200 != nil && patched.JSON200.Email == "" &&
		patched.JSON200.DisplayName == "李伟" && patched.HTTPResponse.Header.Get("ETag") == `"2"`, bodyOf(patched))

	shown, failed := c.GetUserWithResponse(ctx, id, nil)
	want("get-user", failed, shown != nil && shown.JSON200 != nil && shown.JSON200.Gender == "f", bodyOf(shown))

	locked, failed := c.LockUserWithResponse(ctx, id, nil, api.LockUserRequest{Reason: text("on leave")})
	want("lock-user", failed, locked != nil && locked.JSON200 != nil && locked.JSON200.Locked, bodyOf(locked))

	list, failed := c.ListUsersWithResponse(ctx,
		&api.ListUsersParams{Keyword: text("li"), Locked: flag[api.ListUsersParamsLocked]("true")})
	want("list-users", failed,
		list != nil && list.JSON200 != nil && len(list.JSON200.Items) == 1 && *list.JSON200.Total == 1, bodyOf(list))

	name, failed := c.CheckLoginNameWithResponse(ctx, nil, api.CheckLoginNameRequest{LoginName: "li.wei"})
	want("check-login-name", failed, name != nil && name.JSON200 != nil && !name.JSON200.Available, bodyOf(name))

	tree, failed := c.CreateCoreObjectWithResponse(ctx, nil, api.NewCoreObject{Code: "company", Name: "Acme"})
	want("create-core-object", failed, tree != nil && tree.JSON200 != nil, bodyOf(tree))

	node, failed := c.CreateTreeNodeWithResponse(ctx, nil,
		api.NewTreeNode{ObjectCode: "company", Name: "平台组", ParentId: ""})
	want("create-tree-node", failed, node != nil && node.JSON200 != nil && *node.JSON200.Depth == 1, bodyOf(node))
	if err != nil {
		return err
	}

	member, failed := c.AddTreeUserWithResponse(ctx, nil, api.NewMembership{NodeId: *node.JSON200.Id, UserId: id})
	want("add-tree-user", failed, member != nil && member.JSON200 != nil, bodyOf(member))

	members, failed := c.ListTreeNodeUsersWithResponse(ctx, *node.JSON200.Id, nil)
	want("list-tree-node-users", failed,
		members != nil && members.JSON200 != nil && len(members.JSON200.Items) == 1, bodyOf(members))

	refused, failed := c.CreateUserWithResponse(ctx, nil, api.NewUser{Username: "li.wei"})
	want("create-user again", failed, refused != nil && refused.ApplicationproblemJSON409 != nil &&
		refused.ApplicationproblemJSON409.Code == "already_exists", bodyOf(refused))

	deleted, failed := c.DeleteUserWithResponse(ctx, id, nil)
	want("delete-user", failed, deleted != nil && deleted.JSON200 != nil && deleted.JSON200.Id == id, bodyOf(deleted))
	return err
}

func flag[T ~string](value T) *T { return &value }

// bodyOf prints a response.
func bodyOf(answer any) []byte { return fmt.Appendf(nil, "%+v", answer) }
