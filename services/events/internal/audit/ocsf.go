package audit

import (
	"encoding/json"
	"strings"
)

// ocsfVersion is that of the Open Cybersecurity Schema Framework whose classes are used: https://schema.ocsf.io/1.3.0
const ocsfVersion = "1.3.0"

// class is an event class of OCSF with its category.
type class struct {
	uid, category      int
	name, categoryName string
}

var (
	// entityManagement is for what was done to records.
	entityManagement = class{3004, 3, "Entity Management", "Identity & Access Management"}
	// authentication is for sign-ins of people and clients, whether they failed or not.
	authentication = class{3002, 3, "Authentication", "Identity & Access Management"}
	// apiActivity is for requests that were denied.
	apiActivity = class{6003, 6, "API Activity", "Application Activity"}
)

type object = map[string]any

// inOCSF is the JSON of an OCSF event about an entry.
func inOCSF(e *Entry) ([]byte, error) {
	c := classOf(e)
	id, name := activityOf(c, e)
	out := object{
		"activity_id": id, "activity_name": name,
		"category_uid": c.category, "category_name": c.categoryName,
		"class_uid": c.uid, "class_name": c.name,
		"type_uid": c.uid*100 + id, "type_name": c.name + ": " + name,
		"time":        e.Time.Std().UnixMilli(),
		"severity_id": 1, "severity": "Informational",
		"status_id": 1, "status": "Success",
		"message": strings.TrimSpace(e.Entity + " " + e.Record + " " + e.Action),
		"metadata": object{
			"version": ocsfVersion, "uid": e.EventID, "correlation_uid": e.RequestID, "tenant_uid": e.TenantID,
			"log_name": "audit", "product": object{"name": "idplatform", "vendor_name": "idplatform"},
		},
		"actor":    object{"user": object{"uid": e.Actor, "type_id": actorType(e.Actor)}},
		"unmapped": object{"changes": e.Changes, "origin": e.Origin, "entity": e.Entity, "action": e.Action},
	}
	if e.Outcome == Denied {
		out["severity_id"], out["severity"] = 3, "Medium"
		out["status_id"], out["status"], out["status_detail"] = 2, "Failure", e.Reason
		out["count"] = e.Count
	}
	if e.Address != "" {
		out["src_endpoint"] = object{"ip": e.Address}
	}
	switch c {
	case entityManagement:
		out["entity"] = object{"type": e.Entity, "uid": e.Record}
	case authentication:
		out["user"] = object{"uid": subjectOf(e), "type": e.Entity}
	case apiActivity:
		out["api"] = object{"operation": e.Action}
		if e.Address == "" { // the class asks for one
			out["src_endpoint"] = object{"name": "unknown"}
		}
	}
	return json.Marshal(out)
}

func classOf(e *Entry) class {
	switch {
	case isSignIn(e):
		return authentication
	case e.Outcome == Denied:
		return apiActivity
	}
	return entityManagement
}

// isSignIn reports whether an entry is about a password that was checked, a client, or a person who enters an
// application.
func isSignIn(e *Entry) bool {
	return e.Entity == "sign_in" || strings.HasPrefix(e.Action, "login_") ||
		strings.HasPrefix(e.Action, "authentication_")
}

// subjectOf is who signs in: the entry's record, or of sign_in the user that it names; "" if nobody is known.
func subjectOf(e *Entry) string {
	if e.Entity != "sign_in" {
		return e.Record
	}
	var id string
	for _, c := range e.Changes {
		if c.Member == "user_id" {
			_ = json.Unmarshal(c.After, &id) // it is text
		}
	}
	return id
}

// activityOf is the activity's number and name in the class.
func activityOf(c class, e *Entry) (int, string) {
	switch c {
	case authentication:
		return 1, "Logon"
	case entityManagement:
		switch e.Action {
		case "created":
			return 1, "Create"
		case "updated":
			return 3, "Update"
		case "deleted":
			return 4, "Delete"
		}
	}
	return 99, e.Action
}

// actorType is OCSF's type of a user: 1 is a person, 3 the system, 99 another one, such as a client.
func actorType(actor string) int {
	switch {
	case strings.HasPrefix(actor, "user:"):
		return 1
	case actor == "system":
		return 3
	}
	return 99
}
