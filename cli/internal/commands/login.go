package commands

import (
	"context"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/idplatform/idplatform/cli/internal/config"
	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/session"
)

// login makes the command that signs in and keeps how as a context.
func login(a *App) *cobra.Command {
	l := &signingIn{}
	command := &cobra.Command{
		Use: "login [URL]", Short: "Sign in, and keep how as a context", Args: cobra.MaximumNArgs(1),
		Long: "Sign in with an application's client id and secret, and keep them as a context, in a file that only\n" +
			"you can read. Without a terminal, they are two lines of standard input, or one with --client-id.\n\n" +
			"With --key the platform has only the public key (private_key_jwt). With --credential-command the\n" +
			"secret stays in a vault. With --data-dir it is the administrator of the one program.\n" +
			"With --issuer a person signs in in a browser, or with --device on another machine.",
		Example: "  idp login https://idp.example\n  idp login https://idp.example --client-id crm --key crm.pem\n" +
			"  idp login --data-dir ./data\n" +
			"  idp login https://idp.example --issuer https://sso.example --client-id idp-cli --device\n" +
			"  idp login https://idp.example --client-id crm --credential-command vault,read,-field=secret,crm",
	}
	l.flags(command)
	command.RunE = a.run(l.run)
	return command
}

// signingIn is what the flags of login say.
type signingIn struct {
	context config.Context
	oidc    config.OIDC
	way     session.Way
}

func (l *signingIn) flags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&l.context.ClientID, "client-id", "", "the application's client id; otherwise it is asked for")
	flags.StringVar(&l.context.KeyFile, "key", "",
		"a file with a private key that signs instead of a secret: PEM or JWK")
	flags.StringVar(&l.context.Audience, "audience", "", "with --key: the platform's public URL, if it is not URL")
	flags.StringSliceVar(&l.context.CredentialCommand, "credential-command", nil,
		"a command that prints the secret, its words joined by commas")
	flags.StringVar(&l.oidc.Issuer, "issuer", "",
		"sign in as a person at this OpenID issuer, which the platform trusts")
	flags.StringSliceVar(&l.oidc.Scopes, "scope", []string{"openid", "offline_access"}, "with --issuer: scopes")
	flags.BoolVar(&l.way.Device, "device", false, "with --issuer: sign in on another device, with a code")
	flags.StringVar(&l.way.Resource, "resource", "",
		"with --issuer: the API that the tokens are for (RFC 8707); URL, where the issuer is the platform's own")
	flags.StringVar(&l.context.DataDir, "data-dir", "", "the data folder of the one program")
	flags.BoolVar(&l.context.Protected, "protected", false, "changes want --yes and the context's name")
}

func (l *signingIn) run(ctx context.Context, s *session.Session, args []string) error {
	c, o := &l.context, &l.oidc
	if len(args) == 1 {
		c.URL = args[0]
		if err := session.CheckURL(c.URL); err != nil { // before anything is asked for
			return err
		}
	}
	name := s.Options.Context
	if o.Issuer != "" {
		o.ClientID, c.ClientID, c.OIDC = c.ClientID, "", o
		if c.URL == "" || o.ClientID == "" {
			return failure.Usagef("--issuer needs the platform's URL and --client-id")
		}
		if url := strings.TrimSuffix(c.URL, "/"); l.way.Resource == "" && strings.HasPrefix(o.Issuer, url+"/sign-in/") {
			l.way.Resource = url
		}
		if err := s.SignIn(ctx, o, l.way); err != nil {
			return err
		}
	} else if err := complete(s, c); err != nil {
		return err
	}
	if name == "" {
		name = nameOf(c)
	}
	s.Use(name, c)
	client, err := s.Client()
	if err != nil {
		return err
	}
	who, err := client.WhoAmI(ctx)
	if err != nil {
		return err
	}
	c.Tenant = who.TenantID
	session.ForgetTokens(s.CachePath, name) // they may be another client's
	err = config.Change(ctx, s.ConfigPath, func(f *config.File) error {
		if old := f.Contexts[name]; old != nil {
			if s.Options.Context == "" && old.Tenant != c.Tenant {
				return failure.Usagef("the context %s is of tenant %s: --context NAME keeps both", name, old.Tenant)
			}
			c.Protected = c.Protected || old.Protected // signing in again takes no protection away
		}
		f.Contexts[name], f.Current = c, name
		return nil
	})
	if err != nil {
		return err
	}
	s.Notef("signed in as %s in tenant %s; the context is %s", who.Actor, who.TenantID, name)
	return nil
}

// complete asks for what the flags do not say.
func complete(s *session.Session, c *config.Context) (err error) {
	if c.DataDir != "" {
		if c.DataDir, err = filepath.Abs(c.DataDir); err != nil {
			return err
		}
		c.URL, _, _, err = session.DataDir(c.DataDir)
		return err
	}
	if c.URL == "" {
		return failure.Usagef("idp login needs the platform's URL, or --data-dir")
	}
	if c.ClientID == "" {
		if c.ClientID, err = s.Line("Client id"); err != nil {
			return err
		}
	}
	if c.KeyFile != "" {
		c.KeyFile, err = filepath.Abs(c.KeyFile)
		return err
	}
	if len(c.CredentialCommand) == 0 {
		c.ClientSecret, err = s.Secret("Client secret")
	}
	return err
}

// nameOf is the name of a context that nobody has named.
func nameOf(c *config.Context) string {
	if c.DataDir != "" {
		return "local"
	}
	if parsed, err := url.Parse(c.URL); err == nil && parsed.Host != "" {
		return parsed.Host
	}
	return "default"
}
