package observer

import (
	"encoding/json"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
)

// Identity is a certificate with its key, and the root that services are checked against. All PEM.
type Identity struct {
	Certificate, Key, Root []byte
}

// Endpoints are host:port of authority, and of data by node.
type Endpoints struct {
	Authority string
	Data      map[string]string
}

// StateFolder is the state folder of a deployment: who may call, and where the services are.
type StateFolder string

// DefaultStateFolder is where the command keeps it: WHEELHOUSE_STATE, else below XDG_STATE_HOME.
func DefaultStateFolder() (StateFolder, error) {
	if named := os.Getenv("WHEELHOUSE_STATE"); named != "" {
		return StateFolder(named), nil
	}
	if base := os.Getenv("XDG_STATE_HOME"); base != "" {
		return StateFolder(filepath.Join(base, "wheelhouse")), nil
	}
	home, err := os.UserHomeDir()
	return StateFolder(filepath.Join(home, ".local", "state", "wheelhouse")), err
}

// Identity reads an identity. It fails when the folder has none of that name.
func (folder StateFolder) Identity(role, name string) (Identity, error) {
	var id Identity
	for path, content := range map[string]*[]byte{
		filepath.Join("identities", role, name+".crt"): &id.Certificate,
		filepath.Join("identities", role, name+".key"): &id.Key,
		filepath.Join("ca", "root.crt"):                &id.Root,
	} {
		read, err := os.ReadFile(filepath.Join(string(folder), path))
		if err != nil {
			return Identity{}, err
		}
		*content = read
	}
	return id, nil
}

// Endpoints reads where the services are. It fails when none were started from the folder.
func (folder StateFolder) Endpoints() (Endpoints, error) {
	var noted struct {
		Authority string
		Data      json.RawMessage
	}
	raw, err := os.ReadFile(filepath.Join(string(folder), "endpoints.json"))
	if err != nil {
		return Endpoints{}, err
	}
	if err := json.Unmarshal(raw, &noted); err != nil {
		return Endpoints{}, fmt.Errorf("endpoints.json: %w", err)
	}
	var only string
	if json.Unmarshal(noted.Data, &only) == nil {
		return Endpoints{noted.Authority, map[string]string{"local": only}}, nil
	}
	byNode := map[string]string{}
	if err := json.Unmarshal(noted.Data, &byNode); err != nil {
		return Endpoints{}, fmt.Errorf("endpoints.json: %w", err)
	}
	return Endpoints{noted.Authority, byNode}, nil
}

var (
	notInNames   = regexp.MustCompile(`[^a-z0-9._-]`)
	notFirstThen = regexp.MustCompile(`^[^a-z0-9]+`)
)

// OperatorName is the current user as a name that an identity may carry.
func OperatorName() string {
	current, err := user.Current()
	if err != nil {
		return "operator"
	}
	name := notInNames.ReplaceAllString(strings.ToLower(current.Username), "-")
	name = notFirstThen.ReplaceAllString(name, "")
	if len(name) > 63 {
		name = name[:63]
	}
	if name == "" {
		return "operator"
	}
	return name
}
