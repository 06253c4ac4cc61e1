package questions_test

import (
	"encoding/json"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/services/questions"
)

// example is one request and answer, in the form of the files in testdata.
type example struct {
	Request any `json:"request"`
	Answer  any `json:"answer"`
}

func of[Req, Resp any](q bus.Question[Req, Resp], request Req, answer Resp) (string, func(*testing.T)) {
	return q.Service + "." + q.Name, func(t *testing.T) {
		t.Parallel()
		body, err := json.MarshalIndent(example{request, answer}, "", "  ")
		require.NoError(t, err)
		basic.Golden(t, "testdata/"+q.Service+"."+q.Name+".json", append(body, '\n'))
		var back struct {
			Request Req  `json:"request"`
			Answer  Resp `json:"answer"`
		}
		require.NoError(t, json.Unmarshal(body, &back))
		again, err := json.MarshalIndent(example{back.Request, back.Answer}, "", "  ")
		require.NoError(t, err)
		require.Equal(t, string(body), string(again), "one side must be able to read what the other writes")
	}
}

// Services of different versions exchange these forms.
func TestGoldenQuestions(t *testing.T) {
	t.Parallel()
	raw := func(text string) []json.RawMessage { return []json.RawMessage{json.RawMessage(text)} }
	cases := map[string]func(*testing.T){}
	add := func(name string, run func(*testing.T)) { cases[name] = run }
	add(of(questions.ExistingUsers, questions.UserIDs{IDs: []string{"1048577", "1048578"}},
		questions.UserIDs{IDs: []string{"1048577"}}))
	add(of(questions.UserRecords,
		questions.UsersPage{
			RecordsPage: questions.RecordsPage{After: "…", Limit: 500}, AfterID: "1048576",
			Members: []string{"id", "username"},
		},
		questions.Records{Users: raw(`{"id":"1048577","username":"li.wei"}`), Sequences: []int64{30}, Next: "…"}))
	add(of(questions.MatchingUsers, questions.Search{Keyword: "伟", Limit: 1000},
		questions.Found{IDs: []string{"1048577"}, More: true}))
	add(of(questions.CredentialsOfConnection, questions.ConnectionNumber{ID: 1048577},
		questions.Count{Count: 3}))
	add(of(questions.ChangeMembership,
		questions.MembershipChange{
			ID: "1", UserID: "2", ObjectCode: "company", FromNodeID: "3", ToNodeID: "4", DryRun: true,
			Held: &questions.Scopes{Scopes: []string{"users:write"}},
		},
		questions.Memberships{Memberships: raw(`{"id":"5"}`)}))
	add(of(questions.ChangeMemberships,
		questions.MembershipsChange{
			ID: "1", UserIDs: []string{"2", "5"}, ObjectCode: "company", FromNodeID: "3", ToNodeID: "4", DryRun: true,
			Held: &questions.Scopes{Scopes: []string{}},
		},
		questions.Changed{}))
	add(of(questions.SettleChange, questions.ChangeID{ID: "1"},
		questions.ChangeOutcome{Applied: true, Memberships: questions.Memberships{Memberships: raw(`{"id":"5"}`)},
			NodeState: questions.NodeState{Node: raw(`{"id":"3"}`)[0], Sequence: 20}}))
	add(of(questions.GrantsOfNode, questions.GrantedNode{ObjectCode: "company", NodeID: "3"},
		questions.Count{Count: 2}))
	add(of(questions.NextUsersTenant, questions.TenantName{}, questions.TenantName{Tenant: "acme"}))
	add(of(questions.NextOrganizationTenant, questions.TenantName{Tenant: "acme"},
		questions.TenantName{Tenant: "globex"}))
	add(of(questions.GroupsOfUser, questions.GroupsQuestion{UserID: "1048577"},
		questions.Groups{Groups: []string{"company/company", "company/rd"}}))
	add(of(questions.CoreObjectRecords, questions.RecordsPage{Limit: 500},
		questions.CoreObjects{CoreObjects: []questions.CoreObject{{ID: "1", Code: "company", Name: "Acme",
			Sequence: 10}}}))
	add(of(questions.NodeRecords, questions.RecordsPage{After: "…", Limit: 500},
		questions.Nodes{Nodes: []questions.Node{{ID: "3", Name: "Platform", ParentID: "2", ObjectCode: "company",
			Sequence: 20, Code: "platform", Status: "1", IsPointer: "0", IsDynamic: "0", Version: 2,
			TimeCreated: "2026-01-31T09:30:00.000Z"}}, Next: "…"}))
	add(of(questions.SettingsOfUsers, questions.Nothing{}, questions.UserSettings{SharedContacts: true}))
	add(of(questions.UserPlaces, questions.PartsOf{Parts: 4}, questions.Places{IDs: []string{"1048577"}}))
	add(of(questions.MembershipPlaces, questions.PartsOf{Parts: 4}, questions.Places{IDs: []string{"5"}}))
	add(of(questions.MembershipRecords,
		questions.MembershipsPage{RecordsPage: questions.RecordsPage{Limit: 500}, AfterID: "4"},
		questions.MembershipPage{Memberships: []questions.Membership{{ID: "5", NodeID: "3", UserID: "1048577",
			Sequence: 10}}}))
	add(of(questions.ConnectionExists, questions.ConnectionID{ID: "1048577"}, questions.Exists{Exists: true}))
	add(of(questions.GrantsOfApplication, questions.ApplicationID{ID: "1048577"}, questions.Count{Count: 2}))
	add(of(questions.ExistingConnections, questions.ConnectionIDs{IDs: []string{"31", "32"}},
		questions.Connections{Connections: []questions.Connection{{ID: "31", ProviderCode: "wechat_scan_qr"}}}))
	add(of(questions.NextApplicationsTenant, questions.TenantName{}, questions.TenantName{Tenant: "acme"}))
	add(of(questions.ApplicationRecords, questions.RecordsPage{Limit: 500},
		questions.Applications{Applications: []questions.Application{{ID: "2001", Name: "Shop", Sequence: 10}}}))
	add(of(questions.LaunchableApplications, questions.RecordsPage{After: "…", Limit: 200},
		questions.Launchables{Applications: []questions.Launchable{
			{ID: "2001", Name: "Shop", LoginURL: "https://shop.example.com"}, {ID: "2002", Name: "Wiki"},
		}, Next: "…"}))
	add(of(questions.ApplicationsOfConnection, questions.ConnectionID{ID: "1048577"}, questions.Count{Count: 3}))
	add(of(questions.IsSubscriber, questions.Subscriber{ID: "1048577", Password: "whsec_bm90IGEgc2VjcmV0"},
		questions.Admission{Admitted: true}))
	add(of(questions.UnknownEventTypes, questions.EventTypes{Types: []string{"user.*", "user.crated"}},
		questions.EventTypes{Types: []string{"user.crated"}}))
	addSignIn(add, raw)
	addProvisioning(add, raw)
	for name, run := range cases {
		t.Run(name, run)
	}
	require.Len(t, cases, declared(t), "every declared question must have an example")
}

// declared counts the questions declared in the package's source.
func declared(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir(".")
	require.NoError(t, err)
	declaration := regexp.MustCompile(`(?m)^var \w+ = bus\.Question\[`)
	n := 0
	for _, file := range files {
		if file.IsDir() {
			continue
		}
		source, err := os.ReadFile(file.Name())
		require.NoError(t, err)
		n += len(declaration.FindAll(source, -1))
	}
	return n
}

// addSignIn adds the questions that the sign-in service asks.
func addSignIn(add func(string, func(*testing.T)), raw func(string) []json.RawMessage) {
	record := questions.SignedIn{User: raw(`{"id":"1048577","username":"li.wei"}`)[0], Sequence: 30}
	add(of(questions.TransitKeyOfUsers, questions.Nothing{}, secret.TransitKey{ID: "0a1b2c3d4e5f6071", Public: "…"}))
	add(of(questions.VerifyLogin, questions.Login{LoginName: "li.wei", Password: "t1.…",
		Browser: questions.Browser{ID: "9f86…", KnownTo: []string{"1048577"}}},
		questions.LoginVerified{Verified: true, MustChangePassword: true, SignedIn: record}))
	add(of(questions.SetPassword, questions.NewPassword{
		ID: "7", UserID: "1048577", Password: "t1.…", TimePasswordChanged: clock.FromMillis(1_769_851_800_000),
		Email: "li.wei@example.com",
	}, record))
	add(of(questions.VerifyEmail, questions.ProvenEmail{UserID: "1048577", Email: "li.wei@example.com"}, record))
	add(of(questions.InvitableUser, questions.UserToInvite{UserID: "1048577"}, questions.Invitable{
		Reason: questions.HasPassword, SignedIn: record}))
	foreign := questions.ForeignIdentity{
		ConnectionID: "31", ProviderCode: "oidc", Subject: "ann-at-corp", Subject2: "two", Username: "ann",
		DisplayName: "Ann Lee",
	}
	add(of(questions.FindLinked, foreign, questions.Linked{
		Reason: questions.NotLinked, LinkID: "1048599", HasScopes: true, SignedIn: record}))
	add(of(questions.Link, questions.NewLink{ForeignIdentity: foreign, UserID: "1048577", Email: "ann@example.com"},
		questions.Linked{LinkID: "1048599", SignedIn: record}))
	add(of(questions.LinksOf, questions.LinksQuestion{UserID: "1048577"}, questions.UserLinks{
		Links: []questions.UserLink{{
			ID: "1048599", ConnectionID: "31", ProviderCode: "oidc", Name: "ann", Enabled: true,
			TimeCreated: clock.FromMillis(1_769_851_800_000),
		}},
	}))
	add(of(questions.Unlink, questions.EndedLink{UserID: "1048577", ID: "1048599", MayBeLast: true},
		questions.Nothing{}))
	add(of(questions.MayUse, questions.Use{UserID: "1048577", AppID: "2001"},
		questions.MayUseAnswer{Allowed: true, RuleID: "9", Reason: "granted"}))
	add(of(questions.Usable, questions.UsableQuestion{UserID: "1048577", AppIDs: []string{"2001", "2002"}},
		questions.ApplicationIDs{IDs: []string{"2001"}}))
	add(of(questions.HeldScopes,
		questions.ScopesQuestion{UserID: "1048577", AppID: "2001", Scopes: []string{"users:read", "users:write"}},
		questions.Scopes{Scopes: []string{"users:read"}}))
	add(of(questions.ScopesOfUser, questions.HolderOfScopes{UserID: "1048577"},
		questions.Scopes{Scopes: []string{"users:write", "platform:admin"}}))
	add(of(questions.ScopesOfNodes, questions.NodeIDs{IDs: []string{"3", "4"}}, questions.ScopesOfMembers{
		Scopes: questions.Scopes{Scopes: []string{"users:write"}}, Unknown: []string{"4"}}))
	add(of(questions.ClientOf, questions.ClientName{ClientID: "c1", Origin: "https://…"}, questions.Client{
		AppID: "2001", ClientID: "c1", Name: "Shop", Category: "1", Enabled: true, SSO: true, MFA: true,
		SubAccounts: true, LoginURL: "https://shop.example.com", LogoutURL: "https://shop.example.com/bye",
		RedirectURLs: []string{"https://shop.example.com/callback"}, LoginTemplate: "strong",
		Sources: []string{"31"}, SocialProviders: map[string]bool{"google": true},
		Scopes: []string{"users:read"}, JWKS: raw(`{"keys":[]}`)[0],
		JWKSURI: "https://shop.example.com/jwks",
		SignIn: questions.SignInSettings{
			Consent: true, Audiences: []string{"https://api.example.com"},
			PostLogoutURLs:       []string{"https://shop.example.com/bye"},
			BackchannelLogoutURL: "https://shop.example.com/out", FrontchannelLogoutURL: "https://shop.example.com/frame",
			SLOURL: "https://shop.example.com/slo", SLOByPost: true, SLOSOAPURL: "https://shop.example.com/soap",
			ACSURLs: []string{"https://shop.example.com/acs2"},
			SPCerts: []string{"-----BEGIN CERTIFICATE-----…"}, SignedRequests: true, IdPInitiated: true,
		},
		OIDC: &questions.OIDCSettings{SignatureAlgorithm: "RS256", LifetimeInSeconds: 3600,
			ResponseAttributes: []questions.Attribute{{Value: "employee_number", Attribute: "staff"}}},
		SAML: &questions.SAMLSettings{
			ACSURL: "https://shop.example.com/acs", SPEntity: "https://shop.example.com",
			ResponseAttributes: []questions.Attribute{{Value: "email", Attribute: "mail", NameFormat: "urn:…"}},
			LifetimeInSeconds:  3600, SignatureAlgorithm: "…#rsa-sha256", DigestAlgorithm: "…#sha256",
			NameIDFormat: "urn:…", AuthnContextClassRef: "urn:…", SigningCert: "-----BEGIN CERTIFICATE-----…",
		},
		CAS:     &questions.CASSettings{},
		Secrets: []questions.HashedSecret{{SHA256: "9f86d0…"}},
	}))
	add(of(questions.SigningKeyOf,
		questions.SigningKeyQuestion{AppID: "2001", To: secret.TransitKey{ID: "0a1b2c3d4e5f6071", Public: "…"}},
		questions.SigningKey{Sealed: "t1.…"}))
	add(of(questions.AccountsOfUser, questions.AccountsQuestion{AppID: "2001", UserID: "1048577"},
		questions.SubAccounts{Accounts: []questions.SubAccount{
			{ID: "3001", Account: "liwei", DisplayName: "Li Wei", IsDefault: true},
		}}))
	add(of(questions.RecoverableUser, questions.LoginName{LoginName: "li.wei"},
		questions.Recoverable{Found: true, SignedIn: questions.SignedIn{
			User: json.RawMessage(`{"id":"1048577"}`), Sequence: 30,
		}}))
	add(of(questions.SettingsOfConnection,
		questions.SettingsQuestion{
			ConnectionID: "1048577", ProviderCode: "mfa_mail", To: secret.TransitKey{ID: "1", Public: "…"},
		},
		questions.SealedSettings{ConnectionID: "1048577", ProviderCode: "mfa_mail", Sealed: "…"}))
	add(of(questions.LoginTemplateOf, questions.TemplateCode{Code: "strong"}, questions.LoginTemplate{
		Found: true, Code: "strong", Steps: []questions.LoginStep{
			{Required: true, Methods: []questions.LoginMethod{{Code: "pwd", Type: "password"}, {
				Code: "sso", Type: "enterprise", Connections: []questions.Connection{
					{ID: "31", ProviderCode: "oidc", Name: "Acme SSO"},
				},
			}}},
			{
				Methods: []questions.LoginMethod{{
					Code: "key", Type: "webauthn", Second: true,
					Policy: json.RawMessage(`{"user_verification":"required"}`),
				}},
				Enrol: questions.EnrolDemand, GraceDays: 14, When: "!known_browser",
			},
		},
	}))
	add(of(questions.WhatIsDue, questions.SecondStep{
		UserID: "1048577", AppID: "1048578", Code: "123456", User: json.RawMessage(`{"id":"1048577"}`),
	}, questions.Due{Required: true, Methods: []string{"otp"}, Refused: questions.InvalidCode}))
}

// addProvisioning adds the questions that the provisioning service asks.
func addProvisioning(add func(string, func(*testing.T)), raw func(string) []json.RawMessage) {
	owner := questions.ManagedBy{ConnectionID: "4001", Members: []string{"username", "status"}}
	user := questions.UserState{User: raw(`{"id":"1048577","username":"li.wei"}`)[0], Sequence: 30}
	node := questions.NodeState{Node: raw(`{"id":"3","name":"Platform"}`)[0], Sequence: 20}
	add(of(questions.FindUser, questions.UserName{Username: "li.wei"}, user))
	add(of(questions.ChangeUser, questions.UserChange{
		ID: "7", UserID: "1048577", Version: 2, Action: questions.UpdateUser,
		Profile:  raw(`{"display_name":"Li Wei","sys_ext_props":{"scim":{"title":"Tour Guide"}}}`)[0],
		Password: "t1.…", Credential: &questions.UserCredential{ProviderCode: "oidc", IDPConfigID: 31, ID1: "00u1"},
		ManagedBy: &owner, DryRun: true, Unique: true, NodeID: "3",
	}, user))
	add(of(questions.SettleUserChange, questions.ChangeID{ID: "7"},
		questions.UserOutcome{Applied: true, UserState: user}))
	add(of(questions.MakeTree, questions.NewTree{ID: "8", Code: "okta", Name: "Okta", ManagedBy: owner, DryRun: true},
		questions.Tree{ID: "1", Code: "okta", RootNodeID: "2", Made: true, Sequence: 10}))
	add(of(questions.ChangeNode, questions.NodeChange{
		ID: "9", ObjectCode: "okta", RootNodeID: "2", NodeID: "3", Version: 2, Action: questions.UpdateNode,
		Node: raw(`{"name":"Platform"}`)[0], DryRun: true,
	}, node))
	add(of(questions.ChangeMembers, questions.MembersChange{
		ID: "10", NodeID: "3", Add: []string{"1048577"}, Remove: []string{"1048578"}, DryRun: true, Unmanaged: true,
	}, questions.MembersChanged{
		Unknown:     []string{},
		Memberships: []questions.Membership{{ID: "5", NodeID: "3", UserID: "1048577", Sequence: 10}},
		Ended:       []questions.Membership{{ID: "6", NodeID: "3", UserID: "1048578", Sequence: 20}},
	}))
}
