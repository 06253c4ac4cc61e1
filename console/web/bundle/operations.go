package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// operationsModule is what the console imports to get the table.
const operationsModule = "idp:operations"

var (
	sdkCall  = regexp.MustCompile(`(?s)export const (\w+) = .*?client\)\.(?:sse\.)?(\w+)<.*?url: '([^']+)'`)
	capitals = regexp.MustCompile(`[A-Z]`)
)

// operations reads the ids of all operations of the management API that write from the SDK, whose functions are named
// after them: "POST /v1/users" → "create-user". The console shows with it what it has done as a command.
func operations(sdk string) (map[string]string, error) {
	body, err := os.ReadFile(filepath.Join(sdk, "sdk.gen.ts"))
	if err != nil {
		return nil, err
	}
	table := map[string]string{}
	for _, m := range sdkCall.FindAllStringSubmatch(string(body), -1) {
		name, method, url := m[1], strings.ToUpper(m[2]), m[3]
		if method == "GET" || method == "HEAD" || !strings.HasPrefix(url, "/v1/") { // not called here
			continue
		}
		id := capitals.ReplaceAllStringFunc(name, func(c string) string { return "-" + strings.ToLower(c) })
		table[method+" "+url] = id
	}
	if len(table) == 0 {
		return nil, errors.New("the SDK has no operations in the form that is known here")
	}
	return table, nil
}

// operationsPlugin makes operationsModule of the SDK's sources.
func operationsPlugin(sdk string) api.Plugin {
	return api.Plugin{Name: "operations", Setup: func(build api.PluginBuild) {
		build.OnResolve(api.OnResolveOptions{Filter: "^" + operationsModule + "$"},
			func(a api.OnResolveArgs) (api.OnResolveResult, error) {
				return api.OnResolveResult{Path: a.Path, Namespace: "operations"}, nil
			})
		build.OnLoad(api.OnLoadOptions{Filter: ".*", Namespace: "operations"},
			func(api.OnLoadArgs) (api.OnLoadResult, error) {
				table, err := operations(sdk)
				if err != nil {
					return api.OnLoadResult{}, err
				}
				body, err := json.Marshal(table)
				text := "export default " + string(body)
				return api.OnLoadResult{Contents: &text, Loader: api.LoaderJS}, err
			})
	}}
}
