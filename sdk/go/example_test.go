package idp_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/oapi-codegen/nullable"

	idp "github.com/idplatform/idplatform/sdk/go"
)

// Example creates a user, changes it, and walks a list.
func Example() {
	url := somePlatform()
	ctx := context.Background()

	tokens, err := idp.ClientCredentials{URL: url, ClientID: "crm", Secret: "…"}.Source()
	if err != nil {
		log.Fatal(err)
	}
	client, err := idp.New(idp.Config{URL: url, Tokens: tokens})
	if err != nil {
		log.Fatal(err)
	}

	user, err := client.CreateUser(ctx, idp.CreateUserBody{Username: "li.wei", DisplayName: new("李伟")})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(user.DisplayName, "has version", user.Version)

	_, err = client.UpdateUser(ctx, user.ID, idp.UserPatch{
		EmployeeNumber: nullable.NewNullableWithValue("A-17"),
	}, idp.IfVersion(user.Version))
	var problem *idp.Problem
	if errors.As(err, &problem) && problem.Code == idp.CodeVersionMismatch {
		fmt.Println("somebody else was faster:", problem.Detail)
	}

	for user, err := range client.ListAllUsers(ctx, idp.ListUsersParams{Keyword: "li"}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(user.Username)
	}
	// Output:
	// 李伟 has version 1
	// somebody else was faster: the record has changed; its version is now 2
	// li.wei
	// li.ming
}

// somePlatform answers the example's requests as a platform does.
func somePlatform() string {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method + r.URL.Path {
		case "POST/v1/oauth2/token":
			fmt.Fprint(w, `{"access_token":"…","expires_in":3600}`)
		case "POST/v1/users":
			fmt.Fprint(w, `{"id":"1048577","version":1,"display_name":"李伟"}`)
		case "PATCH/v1/users/1048577":
			w.WriteHeader(http.StatusPreconditionFailed)
			fmt.Fprint(w, `{"code":"version_mismatch","detail":"the record has changed; its version is now 2"}`)
		case "GET/v1/users":
			fmt.Fprint(w, `{"items":[{"username":"li.wei"},{"username":"li.ming"}]}`)
		}
	})).URL
}
