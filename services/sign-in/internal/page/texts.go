package page

// texts are all that the pages say, by language and key.
var texts = map[string]map[string]string{"en": english, "zh": chinese}

var english = map[string]string{
	"language": "English",

	"sign_in": "Sign in", "to_app": "to continue to %s", "login_name": "Username, email or mobile number",
	"password": "Password", "show": "Show", "hide": "Hide", "continue_as": "Continue as", "or": "or",
	"wrong":    "That login name and password do not match, or this account cannot sign in right now.",
	"away":     "A part of the service is not answering. Nothing was lost: please try again in a moment.",
	"too_many": "There were too many failed sign-ins. Please wait a minute and try again.",
	"cookies":  "This browser does not keep cookies for this site. Please allow them to sign in.",
	"continue": "Continue", "another_account": "Use another account",

	"new_password": "Choose a new password", "new_password_why": "Your password has to be changed before you go on.",
	"new_password_field": "New password", "repeat_password": "Repeat the new password",
	"set_password":  "Set the password and go on",
	"password_rule": "At least 8 characters; not a common password, and none that you had before.",
	"differs":       "The two new passwords are not the same.",
	"refused_new":   "That password cannot be used. It may be too short, too common, or one that you had before.",

	"choose_account": "Choose an account", "choose_why": "You have several accounts in %s.",

	"consent": "Allow access", "consent_head": "%s wants access to your account",
	"consent_who": "You are signed in as %s. If you agree, the application gets:", "agree": "Agree",
	"disagree": "Do not agree", "consent_later": "You can take this back at any time on your own page.",
	"scope_profile": "Your name and profile", "scope_email": "Your email address", "scope_phone": "Your phone number",
	"scope_groups": "The groups that you belong to", "scope_offline_access": "Access while you are not here",
	"scope_openid": "Who you are", "scope_other": "“%s”",

	"refused": "No access", "refused_head": "You cannot open %s",
	"refused_text":      "You are signed in as %s, and this account has no access.",
	"refused_account":   "You are signed in as %s, and you have no account in this application.",
	"ask_administrator": "If you need it, please ask your administrator.", "back_to": "Back to %s",
	"for_administrators": "For administrators", "for_developers": "Details", "account": "Account", "rule": "Rule",
	"request": "Request",
	"admin_no_rule": "No rule of type app opens this application to the account. " +
		"A rule for everyone would open it to all.",
	"admin_denied":   "A rule denies the account this application.",
	"admin_identity": "The permissions service does not know this account, or it may not be used.",
	"admin_account":  "The application demands a sub-account, and the person has none that is enabled.",
	"missing":        "Sign-in is not possible",
	"missing_head":   "You cannot sign in to %s yet",
	"missing_text":   "This application asks for a way of signing in that is not available here.",
	"missing_admin": "Its login template or its settings demand what this service does not offer. " +
		"Change the template, or the application's mfa_enabled:",
	"method_password": "a password (no enabled method is left)", "method_sms": "a code by text message",
	"method_mail": "a code by mail", "method_otp": "a one-time password (TOTP)", "method_webauthn": "a passkey",
	"method_social": "a social login", "method_enterprise": "an enterprise login",
	"method_mfa":  "a second factor (mfa_enabled)",
	"method_none": "a step without an enabled method",

	"problem": "Something went wrong", "problem_text": "Please go back to the application and try again.",
	"bad_request": "This link does not work",
	"bad_request_text": "The application has sent a request that cannot be answered. " +
		"Please go back to it, and tell whoever runs it.",
	"forbidden": "The form was not accepted", "forbidden_text": "It was sent from a page of another site.",
	"not_found": "There is nothing here", "not_found_text": "The address may be mistyped.",
	"unavailable":      "One moment, please",
	"unavailable_text": "A part of the service is not answering. Nothing was lost.",
	"try_again":        "Try again", "unknown_app": "The application is not available",
	"unknown_app_text": "It is not known here, or has been disabled.",

	"leaving": "One moment", "leaving_to": "Taking you to %s …", "leaving_on": "Going on …",

	"sign_out": "Sign out", "sign_out_ask": "Sign out?", "stay": "Stay signed in",
	"sign_out_who": "You are signed in as %s. Signing out also ends your session in the applications " +
		"that you opened.",
	"signed_out":      "You are signed out",
	"signed_out_text": "Your session has ended, and the applications have been told.",
	"sign_in_again":   "Sign in again",

	"device":      "Connect a device",
	"device_why":  "Enter the code that the device or program shows you. Only go on if it is yours.",
	"device_code": "Code", "wrong_code": "That code is not right, or it has expired.",
	"device_done": "The device is connected", "device_refused": "The device is not connected",
	"device_back": "You can close this page and go back to the device.",

	"my_apps": "My applications", "more_apps": "These are the first %d.",
	"apps_away": "They cannot be shown right now. Try again in a moment.",
	"home":      "My account", "my_sessions": "Where you are signed in", "this_browser": "This browser",
	"a_browser": "A browser", "since": "since %s", "my_consents": "What applications may know", "withdraw": "Take back",
	"my_grants":      "Access while you are away",
	"my_grants_hint": "These applications can use your account after you have signed out.",
	"granted_since":  "since %s, until %s unless it is used", "end_grant": "End access",
	"grant_ended":     "The application has no access any more.",
	"change_password": "Change password", "old_password": "Present password",
	"wrong_password":   "The present password is not right.",
	"password_changed": "The password is changed. All other browsers are signed out.",
	"withdrawn":        "The application will ask again.", "session_ended": "That browser is signed out.",
	"not_changed": "Nothing has changed, because your session had ended. Please do it again.",
}

var chinese = map[string]string{
	"language": "简体中文",

	"sign_in": "登录", "to_app": "登录后继续访问 %s", "login_name": "用户名、邮箱或手机号",
	"password": "密码", "show": "显示", "hide": "隐藏", "continue_as": "继续使用", "or": "或",
	"wrong":    "登录名与密码不匹配，或此账号目前无法登录。",
	"away":     "部分服务暂时没有响应。内容没有丢失，请稍后重试。",
	"too_many": "登录失败次数过多，请等待一分钟后重试。",
	"cookies":  "此浏览器未保存本网站的 Cookie。请允许 Cookie 后再登录。",
	"continue": "继续", "another_account": "使用其他账号",

	"new_password": "设置新密码", "new_password_why": "继续之前需要修改密码。",
	"new_password_field": "新密码", "repeat_password": "再次输入新密码",
	"set_password":  "设置密码并继续",
	"password_rule": "至少 8 个字符；不能是常见密码，也不能是以前用过的密码。",
	"differs":       "两次输入的新密码不一致。",
	"refused_new":   "不能使用这个密码。它可能太短、太常见，或以前使用过。",

	"choose_account": "选择账号", "choose_why": "您在 %s 中有多个账号。",

	"consent": "授权", "consent_head": "%s 想要访问您的账户",
	"consent_who": "您当前以 %s 的身份登录。同意后，该应用将获得：", "agree": "同意",
	"disagree": "不同意", "consent_later": "您可以随时在个人页面撤回授权。",
	"scope_profile": "您的姓名和个人资料", "scope_email": "您的邮箱地址", "scope_phone": "您的电话号码",
	"scope_groups": "您所属的组", "scope_offline_access": "在您离线时访问",
	"scope_openid": "您的身份", "scope_other": "“%s”",

	"refused": "没有访问权限", "refused_head": "您无法打开 %s", "refused_text": "您当前以 %s 的身份登录，此账号没有访问权限。",
	"refused_account":   "您当前以 %s 的身份登录，但您在此应用中没有账号。",
	"ask_administrator": "如需使用，请联系管理员。", "back_to": "返回 %s",
	"for_administrators": "管理员信息", "for_developers": "详细信息", "account": "账号", "rule": "规则",
	"request":         "请求编号",
	"admin_no_rule":   "没有类型为 app 的规则允许此账号使用该应用。面向所有人的规则可以向所有人开放。",
	"admin_denied":    "有一条规则禁止此账号使用该应用。",
	"admin_identity":  "权限服务不认识此账号，或此账号不可用。",
	"admin_account":   "该应用要求子账号，而此用户没有已启用的子账号。",
	"missing":         "无法登录",
	"missing_head":    "暂时无法登录 %s",
	"missing_text":    "此应用要求的登录方式在这里不可用。",
	"missing_admin":   "其登录模板或设置要求本服务未提供的方式。请修改模板，或应用的 mfa_enabled：",
	"method_password": "密码（没有可用的方式）", "method_sms": "短信验证码",
	"method_mail": "邮件验证码", "method_otp": "一次性密码（TOTP）", "method_webauthn": "通行密钥",
	"method_social": "社交登录", "method_enterprise": "企业登录", "method_mfa": "第二因素（mfa_enabled）",
	"method_none": "没有可用方式的步骤",

	"problem": "出错了", "problem_text": "请返回应用后重试。",
	"bad_request":      "此链接无效",
	"bad_request_text": "应用发送的请求无法处理。请返回应用，并告知其管理者。",
	"forbidden":        "表单未被接受", "forbidden_text": "它来自其他网站的页面。",
	"not_found": "这里没有内容", "not_found_text": "地址可能有误。",
	"unavailable": "请稍候", "unavailable_text": "部分服务暂时没有响应。内容没有丢失。",
	"try_again": "重试", "unknown_app": "应用不可用",
	"unknown_app_text": "此应用不存在或已停用。",

	"leaving": "请稍候", "leaving_to": "正在前往 %s …", "leaving_on": "正在继续 …",

	"sign_out": "退出登录", "sign_out_ask": "要退出登录吗？", "stay": "保持登录",
	"sign_out_who": "您当前以 %s 的身份登录。退出后，您在已打开的应用中的会话也将结束。",
	"signed_out":   "您已退出登录", "signed_out_text": "您的会话已结束，并已通知相关应用。",
	"sign_in_again": "重新登录",

	"device": "连接设备", "device_why": "请输入设备或程序显示的代码。仅在它属于您时继续。",
	"device_code": "代码", "wrong_code": "代码不正确或已过期。",
	"device_done": "设备已连接", "device_refused": "设备未连接",
	"device_back": "您可以关闭此页面并返回设备。",

	"my_apps": "我的应用", "more_apps": "仅显示前 %d 个。",
	"apps_away": "暂时无法显示，请稍后重试。",
	"home":      "我的账号", "my_sessions": "登录位置", "this_browser": "当前浏览器",
	"a_browser": "某个浏览器", "since": "始于 %s", "my_consents": "应用可以获取的信息", "withdraw": "撤回",
	"my_grants": "您离线时的访问", "my_grants_hint": "您退出登录后，这些应用仍可使用您的账户。",
	"granted_since": "始于 %s，若不使用则至 %s", "end_grant": "结束访问",
	"grant_ended":     "该应用已不再有访问权限。",
	"change_password": "修改密码", "old_password": "当前密码",
	"wrong_password":   "当前密码不正确。",
	"password_changed": "密码已修改，其他浏览器均已退出登录。",
	"withdrawn":        "该应用将再次询问。", "session_ended": "该浏览器已退出登录。",
	"not_changed": "由于会话已结束，未做任何更改。请重新操作。",
}
