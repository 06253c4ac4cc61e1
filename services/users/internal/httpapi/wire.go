package httpapi

import (
	"time"

	"github.com/idplatform/idplatform/pkg/rest"
)

// These types describe JSON for the OpenAPI document and for the validation of bodies. Records are stored in this form
// and are not converted; a test compares the two.

// User is the user record.
type User struct {
	rest.Meta
	Profile
	Locked              bool                   `json:"locked" doc:"Changed by lock and unlock" example:"false"`
	LockReason          string                 `json:"lock_reason" doc:"Why, as the caller said" example:""`
	LockedUntil         *time.Time             `json:"locked_until" nullable:"true" doc:"When the lock ends by itself; null: it does not"`
	RealNameStatus      string                 `json:"real_name_status" enum:"none,pending,verified,rejected" doc:"Changed by real-name verification"`
	RealName            string                 `json:"real_name" doc:"Verified, or waiting for it; empty: none" example:""`
	IDNumberMasked      string                 `json:"id_number_masked" doc:"The number of the document; all but the first and last character are *" example:""`
	AvatarURL           string                 `json:"avatar_url" readOnly:"true" doc:"Where the picture is; empty: none" example:"/v1/users/1048577/avatar"`
	PasswordSet         bool                   `json:"password_set" readOnly:"true" doc:"Whether the user can sign in by password" example:"true"`
	TimePasswordChanged *time.Time             `json:"time_password_changed" readOnly:"true" nullable:"true" doc:"When the password was set last; null: never"`
	TimeLastLogin       *time.Time             `json:"time_last_login" readOnly:"true" nullable:"true" doc:"null: never"`
	TimeResigned        *time.Time             `json:"time_resigned" readOnly:"true" nullable:"true" doc:"In the future while the resignation is only scheduled"`
	ManagedBy           rest.OrNull[ManagedBy] `json:"managed_by" readOnly:"true" doc:"The provisioning connection that owns members of the user, which change only through SCIM; null: none"`
}

// ManagedBy says what a provisioning connection owns of a record.
type ManagedBy struct {
	ConnectionID string   `json:"connection_id" doc:"The provisioning connection" example:"1048577"`
	Members      []string `json:"members" doc:"What only its client changes" example:"[\"username\",\"status\"]"`
}

// Profile holds what create and change can set. The domain checks lengths and forms, so that all faults have the same
// wording.
type Profile struct {
	Username           string         `json:"username" doc:"1…128 letters of any script, digits, . _ - @ + ' ! # ^ ~. Unique with all emails and mobiles, without regard to case and width" example:"li.wei"`
	DisplayName        string         `json:"display_name" doc:"Up to 256 characters; how the person is shown" example:"李伟"`
	Email              string         `json:"email" doc:"RFC 5321 address; unique when not empty" example:"li.wei@acme.test"`
	Mobile             string         `json:"mobile" doc:"E.164 number; unique when not empty" example:"+8613800000000"`
	EmployeeNumber     string         `json:"employee_number" doc:"Up to 64 characters" example:"A-17"`
	Gender             string         `json:"gender" doc:"Up to 64 characters" example:""`
	Locale             string         `json:"locale" doc:"BCP 47 tag" example:"zh-CN"`
	Zoneinfo           string         `json:"zoneinfo" doc:"IANA time zone" example:"Asia/Shanghai"`
	Status             string         `json:"status" doc:"1 active, 0 disabled, resigned (by resignation only)" enum:"1,0,resigned" example:"1"`
	EmailVerified      bool           `json:"email_verified" doc:"Whether the person has shown to own the address" example:"false"`
	MobileVerified     bool           `json:"mobile_verified" doc:"Whether the person has shown to own the number" example:"false"`
	MustChangePassword bool           `json:"must_change_password" doc:"Whether the next sign-in asks for a new password" example:"false"`
	SysExtProps        map[string]any `json:"sys_ext_props" doc:"Any JSON object up to 64 KiB, kept exactly"`
	FreeExtProps       map[string]any `json:"free_ext_props" doc:"Any JSON object up to 64 KiB, kept exactly"`
}

// UserInput is a user to create, or the members of one to change. Members of locks and real names must be unchanged.
type UserInput struct {
	rest.MembersOf[User]
	Username string `json:"username"`
}

// NewUser is a user to create.
type NewUser struct {
	UserInput
	Password string `json:"password,omitempty" writeOnly:"true" doc:"8…256 characters; needs the scope users:secrets"`
}

// Credential is the stored credential record.
type Credential struct {
	rest.Meta
	UserID       int64  `json:"user_id" doc:"The owning user's id, as a number" example:"1048577"`
	ProviderCode string `json:"provider_code" doc:"Code of the social-login provider" example:"wechat_scan_qr"`
	IDPConfigID  int64  `json:"idp_config_id" doc:"Id of the connection, as a number; 0 = none" example:"0"`
	ID1          string `json:"id1" doc:"The provider's unique marker of the user" example:"o6_bmjrPTlm6_2sgVt7hMZOPfL2M"`
	ID2          string `json:"id2" doc:"Second marker" example:""`
	Metadata     string `json:"metadata" doc:"Further markers" example:""`
	Status       string `json:"status" enum:"1,0" doc:"1: people can sign in by it" example:"1"`
	Username     string `json:"username" doc:"What the provider calls the person" example:"li.wei"`
	DisplayName  string `json:"display_name" doc:"How the provider shows the person" example:"李伟"`
}

// CredentialInput is a credential to create, or the members of one to change.
type CredentialInput struct {
	rest.MembersOf[Credential]
	UserID       int64  `json:"user_id"`
	ProviderCode string `json:"provider_code"`
	ID1          string `json:"id1"`
}
