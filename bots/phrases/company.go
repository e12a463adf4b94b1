package phrases

// companyWords are the texts for signing in with a company account, in simplified and
// traditional Chinese.
var companyWords = map[Key][2]string{
	"Continue with %s":                                                             {"使用 %s 继续", "使用 %s 繼續"},
	"You sign in here with your account at %s.":                                    {"请使用你在 %s 的账户在此登录。", "請使用你在 %s 的帳戶在此登入。"},
	"Or confirm this code where nize already knows you:":                           {"或在 nize 认识你的地方确认此代码：", "或在 nize 認識你的地方確認此代碼："},
	"browsers sign in only with the company's account (the setting oidc.required)": {"浏览器只能使用公司账户登录（设置 oidc.required）", "瀏覽器只能使用公司帳戶登入（設定 oidc.required）"},
	"Browsers sign in only with the company's account here, and no identity provider is set. An admin sets one with nizectl identity oidc set, or sets oidc.required to false.":      {"此处浏览器只能使用公司账户登录，但尚未设置身份提供方。管理员可用 nizectl identity oidc set 设置，或将 oidc.required 设为 false。", "此處瀏覽器只能使用公司帳戶登入，但尚未設定身分提供者。管理員可用 nizectl identity oidc set 設定，或將 oidc.required 設為 false。"},
	"No identity provider is set here. An admin sets one with nizectl identity oidc set.":                                                                                            {"此处尚未设置身份提供方。管理员可用 nizectl identity oidc set 设置。", "此處尚未設定身分提供者。管理員可用 nizectl identity oidc set 設定。"},
	"%s can't be reached, so signing in with it doesn't work now. An admin finds the cause with nizectl identity oidc test.":                                                         {"无法访问 %s，因此目前无法用它登录。管理员可用 nizectl identity oidc test 查明原因。", "無法存取 %s，因此目前無法用它登入。管理員可用 nizectl identity oidc test 查明原因。"},
	"%s calls itself by another issuer than the one that is set in nize. An admin sees both with nizectl identity oidc test, and sets the right one with nizectl identity oidc set.": {"%s 自称的颁发者与 nize 中设置的不同。管理员可用 nizectl identity oidc test 查看两者，并用 nizectl identity oidc set 设置正确的颁发者。", "%s 自稱的簽發者與 nize 中設定的不同。管理員可用 nizectl identity oidc test 查看兩者，並用 nizectl identity oidc set 設定正確的簽發者。"},
	"%s did not let you in. Somebody who administers it there assigns you to nize.":                                                                                                  {"%s 未允许你登录。请由那里的管理员将你分配给 nize。", "%s 未允許你登入。請由那裡的管理員將你指派給 nize。"},
	"%s says something about you that nize can't keep. An admin finds what it is in the log of nized.":                                                                               {"%s 提供了 nize 无法保存的关于你的信息。管理员可在 nized 的日志中查看是什么。", "%s 提供了 nize 無法儲存的關於你的資訊。管理員可在 nized 的記錄檔中查看是什麼。"},
	"The answer of %s can't be trusted, so you are not signed in. An admin finds the reason in the log of nized.":                                                                    {"%s 的应答不可信，因此未能登录。管理员可在 nized 的日志中查看原因。", "%s 的回應不可信，因此未能登入。管理員可在 nized 的記錄檔中查看原因。"},
	"The clocks of %s and of nize differ too much, so you are not signed in. An admin sets the clock of the machine that nize runs on.":                                              {"%s 与 nize 的时钟相差过大，因此未能登录。管理员需校准运行 nize 的机器的时钟。", "%s 與 nize 的時鐘相差過大，因此未能登入。管理員需校準執行 nize 的機器的時鐘。"},
	"%s refused this sign-in (%s). An admin looks that up at %s, and compares the registration there with nizectl identity oidc test.":                                               {"%s 拒绝了此次登录（%s）。管理员可在 %s 查明原因，并将那里的注册与 nizectl identity oidc test 的结果比较。", "%s 拒絕了此次登入（%s）。管理員可在 %s 查明原因，並將那裡的註冊與 nizectl identity oidc test 的結果比較。"},
	"%s does not accept nize as its client, so signing in doesn't work. An admin sets client id and secret again with nizectl identity oidc set.":                                    {"%s 不接受 nize 作为其客户端，因此无法登录。管理员需用 nizectl identity oidc set 重新设置客户端 ID 和密钥。", "%s 不接受 nize 作為其用戶端，因此無法登入。管理員需用 nizectl identity oidc set 重新設定用戶端 ID 和密鑰。"},
	"%s did not accept this sign-in: it took too long, or was used before. Begin again; if it fails again, an admin compares the redirect address with nizectl identity oidc test.":  {"%s 未接受此次登录：耗时过长，或已被使用。请重新开始；如再次失败，管理员可用 nizectl identity oidc test 核对重定向地址。", "%s 未接受此次登入：耗時過長，或已被使用。請重新開始；如再次失敗，管理員可用 nizectl identity oidc test 核對重新導向位址。"},
	"%s did not tell nize your groups, and only some groups may use it. An admin has %s send the claim that nizectl identity oidc show names.":                                       {"%s 没有告诉 nize 你所在的组，而只有部分组可以使用 nize。管理员需让 %s 发送 nizectl identity oidc show 所列的声明。", "%s 沒有告訴 nize 你所在的群組，而只有部分群組可以使用 nize。管理員需讓 %s 傳送 nizectl identity oidc show 所列的宣告。"},
	"Your account at %s is in no group that may use nize. An admin adds you to a group of the setting oidc.allowed_groups, or changes that setting.":                                 {"你在 %s 的账户不在可以使用 nize 的任何组中。管理员可将你加入设置 oidc.allowed_groups 中的组，或更改该设置。", "你在 %s 的帳戶不在可以使用 nize 的任何群組中。管理員可將你加入設定 oidc.allowed_groups 中的群組，或變更該設定。"},
	"Your account in nize is disabled. An admin enables it with nizectl users enable.":                                                                                               {"你在 nize 中的账户已停用。管理员可用 nizectl users enable 启用。", "你在 nize 中的帳戶已停用。管理員可用 nizectl users enable 啟用。"},
	"Several people in nize have your email address, so it is not clear who you are. An admin finds them with nizectl users list, and removes or links them.":                        {"nize 中有多人使用你的电子邮件地址，因此无法确定你是谁。管理员可用 nizectl users list 找到他们，并删除或关联。", "nize 中有多人使用你的電子郵件地址，因此無法確定你是誰。管理員可用 nizectl users list 找到他們，並刪除或連結。"},
	"Admins by group": {"按组授予的管理员", "按群組授予的管理員"},
	"groups of the identity provider whose members are admins; a role that came this way ends with the membership; empty is none": {"身份提供方的组，其成员为管理员；以此方式获得的角色随成员资格结束；留空表示没有", "身分提供者的群組，其成員為管理員；以此方式獲得的角色隨成員資格結束；留空表示沒有"},
	"Groups that may sign in": {"可以登录的组", "可以登入的群組"},
	"groups of the identity provider whose members may sign in; if empty, everyone whom the provider lets in": {"身份提供方的组，其成员可以用它登录；留空表示它允许的所有人", "身分提供者的群組，其成員可以用它登入；留空表示它允許的所有人"},
	"Link people by email address": {"按电子邮件地址关联人员", "按電子郵件地址連結人員"},
	"whether a person who signs in with the identity provider for the first time becomes the one person in nize with the same email address, if the provider verified it; otherwise they become a new member": {"首次用身份提供方登录的人，是否成为 nize 中使用同一电子邮件地址的那个人（前提是提供方已验证该地址）；否则成为新成员", "首次用身分提供者登入的人，是否成為 nize 中使用同一電子郵件地址的那個人（前提是提供者已驗證該地址）；否則成為新成員"},
	"Sign in with the identity provider alone": {"只用身份提供方登录", "只用身分提供者登入"},
	"whether browsers and MCP clients sign in with the identity provider alone, without codes and links; the control socket stays as it is": {"浏览器和 MCP 客户端是否只能用身份提供方登录，不再使用代码和链接；控制套接字不变", "瀏覽器和 MCP 用戶端是否只能用身分提供者登入，不再使用代碼和連結；控制通訊端不變"},
}
