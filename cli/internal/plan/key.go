package plan

import (
	"fmt"
	"strconv"
	"strings"
)

// keyOf makes the key of a record, by which people name it in its kind.
func keyOf(kind string, values map[string]any) (string, error) {
	text := func(name string) string {
		s, _ := values[name].(string)
		return s
	}
	switch kind {
	case tree:
		return text("code"), nil
	case node:
		return text("tree") + "/" + text("code"), nil
	case protocol:
		return escaped(text("application")) + "/" + text("type"), nil
	case source:
		return escaped(text("application")) + "/" + text("connection"), nil
	case connection:
		if text("display_name") == "" {
			return text("provider_code"), nil
		}
		return text("provider_code") + "/" + text("display_name"), nil
	case resource:
		return resourceKey(values, text("application")), nil
	case resourceSet:
		return setKey(text("application"), values["code"]), nil
	case member:
		return text("set") + "/" + resourceKey(values, setApplication(text("set"))), nil
	case rule:
		return ruleKey(values)
	}
	return text("name"), nil
}

// escape marks the separators of keys in the names of applications, which can have any characters. So no two records
// have the same key.
var escape = strings.NewReplacer(`\`, `\\`, ":", `\:`, "/", `\/`)

func escaped(application string) string { return escape.Replace(application) }

// setKey is the key of a set. An application without a name is one that is missing.
func setKey(application string, code any) string {
	return fmt.Sprintf("%s:%s", escaped(application), code)
}

// setApplication is the name of the application in the key of a set.
func setApplication(set string) string {
	var name strings.Builder
	for i := 0; i < len(set) && set[i] != ':'; i++ {
		if set[i] == '\\' && i+1 < len(set) {
			i++
		}
		name.WriteByte(set[i])
	}
	return name.String()
}

// resourceKey is the key of the resource that a member or a rule names.
func resourceKey(values map[string]any, application string) string {
	if other, _ := values["resource_application"].(string); other != "" {
		application = other
	}
	return fmt.Sprintf("%s:%s:%s", escaped(application), values["type"], values["code"])
}

// identityTypes are whom a rule can reach, and the kinds that have their names; "" if the name is the id.
var identityTypes = map[string]string{
	"user": user, "node": node, "core_object": tree, "application": application, "group": "", "everyone": "",
}

// identityOf returns whom a rule reaches.
func identityOf(values map[string]any) (kind, name string, err error) {
	identity, _ := values["identity"].(map[string]any)
	kind, _ = identity["type"].(string)
	name, _ = identity["name"].(string)
	_, known := identityTypes[kind]
	for member := range identity {
		if member != "type" && member != "name" {
			return "", "", fmt.Errorf("identity has no member %q: it has type and name", member)
		}
	}
	switch {
	case !known:
		return "", "", fmt.Errorf("identity.type must be one of user, node, core_object, application, group, everyone")
	case kind == "everyone" && name != "" && name != "*":
		return "", "", fmt.Errorf("identity.name: everyone has no name")
	case kind == "everyone":
		name = "*"
	case name == "":
		return "", "", fmt.Errorf("identity.name is missing")
	}
	return kind, name, nil
}

// ruleKey is what a rule is about: whom it reaches, what it gives or denies, but not by which actions.
func ruleKey(values map[string]any) (string, error) {
	kind, name, err := identityOf(values)
	if err != nil {
		return "", err
	}
	object, _ := values["application"].(string)
	if other, _ := values["resource_application"].(string); other != "" {
		object = other
	}
	object = fmt.Sprintf("%s:%s", escaped(object), values["type"])
	if code, _ := values["code"].(string); code != "" {
		object += ":" + code
	}
	verb := "may use"
	if values["affect"] == "deny" {
		verb = "is denied"
	}
	object = unnumbered(object)
	if kind == "everyone" {
		return fmt.Sprintf("everyone %s %s", verb, object), nil
	}
	if strings.Contains(name, " may use ") || strings.Contains(name, " is denied ") {
		name = strconv.Quote(name)
	}
	return fmt.Sprintf("%s %s %s %s", kind, name, verb, object), nil
}

// needs are the records that must be there before this one can be written.
func needs(ref Ref, values map[string]any) []Ref {
	text := func(name string) string {
		s, _ := values[name].(string)
		return s
	}
	switch ref.Kind {
	case protocol, resource, resourceSet:
		return []Ref{{application, text("application")}}
	case source:
		return []Ref{{application, text("application")}, {connection, text("connection")}}
	case member:
		set := text("set")
		return []Ref{{resourceSet, set}, {resource, resourceKey(values, setApplication(set))}}
	case node:
		return nodeNeeds(text("tree"), text("parent"), text("pointer"))
	case rule:
		return ruleNeeds(values)
	}
	return nil
}

func nodeNeeds(of, parent, pointer string) []Ref {
	out := []Ref{{tree, of}}
	if parent != "" {
		out = append(out, Ref{node, of + "/" + parent})
	}
	if pointer != "" {
		out = append(out, Ref{node, pointer})
	}
	return out
}

func ruleNeeds(values map[string]any) []Ref {
	of, _ := values["application"].(string)
	out := []Ref{{application, of}}
	kind, name, _ := identityOf(values)
	if named := identityTypes[kind]; named != "" {
		out = append(out, Ref{named, name})
	}
	switch values["type"] {
	case "data", "api", "ui":
		out = append(out, Ref{resource, resourceKey(values, of)})
	case "res_set":
		if other, _ := values["resource_application"].(string); other != "" {
			of = other
		}
		out = append(out, Ref{resourceSet, setKey(of, values["code"])})
	}
	return out
}

// unnumbered marks what looks like the number of a key in a name.
func unnumbered(name string) string { return strings.ReplaceAll(name, " #", ` \#`) }

// numbered is the key of the nth record of the same name: "… #2".
func numbered(key string, n int) string {
	return fmt.Sprintf("%s #%d", plainKey(key), n)
}

// plainKey is a key without its number.
func plainKey(key string) string {
	at := strings.LastIndex(key, " #")
	if at < 0 || strings.Trim(key[at+2:], "0123456789") != "" {
		return key
	}
	return key[:at]
}
